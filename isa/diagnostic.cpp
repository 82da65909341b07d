// SPDX-License-Identifier: Apache-2.0
#include "isa/diagnostic.h"

#include <algorithm>

#include "isa/upper.h"

namespace mtsim::isa {
namespace {

// Edit distance in which swapping two neighbours counts once: the commonest typo (VFMULAS23) is one step away.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = upper(a[i - 1]) == upper(b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && upper(a[i - 1]) == upper(b[j - 2]) && upper(a[i - 2]) == upper(b[j - 1])) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

std::string joined(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += diagnostic.str();
  }
  return text;
}

}  // namespace

std::string Place::str() const {
  std::string text = file;
  for (const int number : {line, column}) {
    if (number <= 0) break;
    if (!text.empty()) text += ':';
    text += std::to_string(number);
  }
  return text;
}

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
    case Severity::fatal: return "fatal";
  }
  return "?";
}

std::string Diagnostic::str() const {
  std::string text = place.str();
  if (!text.empty()) text += ": ";
  text += severity == Severity::fatal ? "error" : to_string(severity);
  text += ": " + message;
  if (!suggestion.empty()) text += "; " + suggestion;
  return text;
}

IsaError::IsaError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(joined(diagnostics)), m_diagnostics(std::move(diagnostics)) {}

std::string closest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t k_longest_word = 64;  // anything longer is no typo of a name
  constexpr std::size_t k_shortest_stem = 4;
  if (word.size() < 2 || word.size() > k_longest_word) return "";
  const std::size_t limit = std::min<std::size_t>((word.size() + 2) / 3, 3) + 1;
  // (distance, 1 when it is no extension): a word that the candidate only extends was most likely cut short.
  std::pair<std::size_t, int> best_rank{limit, 0};
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    const std::size_t gap =
        candidate.size() > word.size() ? candidate.size() - word.size() : word.size() - candidate.size();
    if (gap >= limit) continue;
    std::pair<std::size_t, int> rank{edit_distance(word, candidate), 1};
    const bool extends = word.size() >= k_shortest_stem && candidate.size() > word.size() &&
                         same_ignoring_case(candidate.substr(0, word.size()), word);
    if (extends && gap < limit) rank = {1, 0};
    if (rank < best_rank) {
      best_rank = rank;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string best = closest(word, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace mtsim::isa
