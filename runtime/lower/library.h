// SPDX-License-Identifier: Apache-2.0
// The operator library as lowering asks for it: programs for the nodes of a graph whose values have their places. What
// moves data only is the same in all libraries; what computes is the choice of ExecutionPlan::operators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/graph.h"
#include "runtime/lower/lowering.h"
#include "runtime/lower/operator_plans.h"
#include "runtime/plan.h"
#include "runtime/weights/device_model.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

/// To be launched one behind the other.
struct OperatorPrograms {
  std::string kernel;  // "gemm small_m + rope"
  std::vector<sim::DspProgram> programs;
};

/// What a library works with; all of it outlives the library.
struct LibraryContext {
  sim::Cluster& cluster;
  const DeviceModel& model;
  const OperatorPlans& plans;
  const BatchShape& batch;
  const BatchInput& input;
  std::function<sim::Pointer(int)> place;  // of a tensor of the graph
};

/// What a program works in is allocated when it is asked for, behind what the cluster has, and may be freed when it has
/// run. All of them throw kernels::KernelError for what a kernel cannot do.
class Library {
 public:
  static std::unique_ptr<Library> of(OperatorLibrary operators, LibraryContext context);
  virtual ~Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Once, when values are placed and before the first operator: what operators of the iteration share.
  virtual void prepare() {}
  /// Tensors that prepare() computed on the host and wrote, at no simulated time.
  virtual std::vector<std::string> host_work() const { return {}; }

  OperatorPrograms gather(const models::Node& node) const;
  OperatorPrograms select(const models::Node& node) const;
  OperatorPrograms kv_append(const models::Node& node) const;

  virtual OperatorPrograms rmsnorm(const models::Node& node) = 0;
  /// By weights [in, out].
  virtual OperatorPrograms linear(const models::Node& node) = 0;
  /// The product itself has no place.
  virtual OperatorPrograms linear_rope(const models::Node& linear, const models::Node& rope) = 0;
  /// By weights [out, in].
  virtual OperatorPrograms head(const models::Node& node) = 0;
  virtual OperatorPrograms bias(const models::Node& node) = 0;
  virtual OperatorPrograms rope(const models::Node& node) = 0;
  /// From Q K^T to weights times V.
  virtual OperatorPrograms attention(const models::Node& scores, const models::Node& values) = 0;
  OperatorPrograms add(const models::Node& node) const { return add(node, input(node, 0), input(node, 1)); }
  /// Of the parts of a tensor-parallel group, in the order of its ranks.
  OperatorPrograms sum(const models::Node& node, const std::vector<sim::Pointer>& parts) const;
  virtual OperatorPrograms add_rmsnorm(const models::Node& add, const models::Node& norm) = 0;
  virtual OperatorPrograms silu_mul(const models::Node& silu, const models::Node& mul) = 0;

 protected:
  /// Of what has the shape of the node's result.
  virtual OperatorPrograms add(const models::Node& node, sim::Pointer x, sim::Pointer a) const = 0;

  explicit Library(LibraryContext context);

  static std::unique_ptr<Library> microcode(LibraryContext context);
  static std::unique_ptr<Library> naive(LibraryContext context);

  /// Operands of silu_mul.
  struct Gated {
    models::GraphTensor shape;
    sim::Pointer gate, up, out;
  };
  Gated gated(const models::Node& silu, const models::Node& mul) const;

  sim::Pointer input(const models::Node& node, std::size_t i = 0) const { return m_context.place(node.inputs[i]); }
  sim::Pointer output(const models::Node& node) const { return m_context.place(node.outputs.front()); }
  sim::Pointer weight(const models::Node& node) const;
  const models::GraphTensor& shape_of_input(const models::Node& node) const { return m_context.plans.input(node); }
  const models::GraphTensor& shape_of_output(const models::Node& node) const { return m_context.plans.output(node); }
  const models::LlamaConfig& config() const { return m_context.model.config(); }
  kernels::DType dtype() const { return m_context.model.dtype(); }
  float eps() const { return static_cast<float>(config().rms_norm_eps); }
  const sim::MachineConfig& machine() const { return m_context.cluster.machine(); }

  const LibraryContext m_context;
  const std::int64_t m_bytes;  // of an element
};

}  // namespace mtsim::runtime
