// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather/gather.h"

#include <fmt/format.h>

#include "kernels/library.h"
#include "kernels/move/move.h"

namespace mtsim::kernels {

sim::DspProgram gather(sim::Cluster&, std::int64_t row_bytes, std::int64_t vocabulary, const GatherOperands& operands) {
  std::vector<RowsMove> moves;
  const sim::Rows row{1, row_bytes, 0};
  for (std::size_t i = 0; i < operands.ids.size(); ++i) {
    const std::int32_t id = operands.ids[i];
    if (id < 0 || id >= vocabulary)
      throw KernelError(fmt::format("gather: id {} at {} is no row of the table, which has {}", id, i, vocabulary));
    moves.push_back({operands.table + id * row_bytes, row, operands.y + static_cast<std::int64_t>(i) * row_bytes, row});
  }
  return move_rows(std::move(moves));
}

}  // namespace mtsim::kernels
