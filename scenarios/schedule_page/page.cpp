// SPDX-License-Identifier: Apache-2.0
#include "scenarios/schedule_page/page.h"

#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include "scenarios/schedule_page/embedded.h"

namespace mtsim::scenarios {

namespace {

/// For a <script> block: nothing in it can end the block or start a comment.
std::string script_json(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string html_text(const std::string& text) {
  // Through JSON, which replaces what is no UTF-8.
  const std::string clean =
      Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::string out;
  for (const char c : clean) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

struct Insertion {
  std::string_view mark;
  std::string text;
};

/// The marks are looked for in the template alone: what goes in may hold anything.
std::string filled(std::string_view html, std::initializer_list<Insertion> insertions) {
  std::string out;
  for (const Insertion& insertion : insertions) {
    const std::size_t at = html.find(insertion.mark);
    if (at == std::string_view::npos) throw std::logic_error("page.html has no " + std::string(insertion.mark));
    out += std::string(html.substr(0, at)) + insertion.text;
    html.remove_prefix(at + insertion.mark.size());
  }
  return out + std::string(html);
}

}  // namespace

std::string page_html(const Page& page, const Json& schedules, const Json& run) {
  std::string html, style, script;
  for (const PageFile& file : page_files()) {
    if (file.name.ends_with(".html")) html += file.text;
    if (file.name.ends_with(".css")) style += file.text;
    if (file.name.ends_with(".js")) script += file.text;
  }
  const Json data = {{"format", "mtsim-schedule-1"},
                     {"command", page.command},
                     {"part", page.part},
                     {"schedules", schedules},
                     {"run", run}};
  return filled(html, {{"@TITLE@", html_text(page.title)},
                       {"/*STYLE*/", style},
                       {"@DATA@", script_json(data)},
                       {"/*SCRIPT*/", script}});
}

}  // namespace mtsim::scenarios
