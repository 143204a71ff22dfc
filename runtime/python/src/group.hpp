// Groups of the C ABI as objects that Python owns: one problem on several ranks.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "handles.hpp"
#include "launch.hpp"

namespace lacuna_python {

class Loopback {
 public:
  explicit Loopback(int size);
  Loopback(const Loopback&) = delete;
  ~Loopback() { lacuna_loopback_destroy(handle_); }
  lacuna_loopback* handle() const { return handle_; }

 private:
  lacuna_loopback* handle_ = nullptr;
};

/// The bytes that one rank gives to the others.
nb::bytes unique_id(const Engine& engine);

/// Everything that waits for other ranks lets Python's other threads run.
class Group {
 public:
  /// One of loopback, id and communicator (the address of an ncclComm_t) is given; rank and size
  /// go with the first two.
  Group(std::shared_ptr<Engine> engine, int rank, int size, std::shared_ptr<Loopback> loopback,
        std::optional<nb::bytes> id, std::uintptr_t communicator, double timeout_s,
        double link_gb_s, double tflops, const std::string& exchange);
  Group(const Group&) = delete;
  ~Group() { lacuna_group_destroy(handle_); }

  void synchronize(std::uintptr_t stream) const;
  const std::shared_ptr<Engine>& engine() const { return engine_; }
  lacuna_group* handle() const { return handle_; }

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Loopback> loopback_;
  lacuna_group* handle_ = nullptr;
};

class GroupKernel {
 public:
  GroupKernel(std::shared_ptr<Group> group, const std::string& spec, const std::string& path,
              int head_dim, const std::string& dtype, std::optional<Shape> shape, bool sequences);
  GroupKernel(const GroupKernel&) = delete;
  ~GroupKernel() { lacuna_group_kernel_destroy(handle_); }

  std::tuple<int, int> tile() const;
  const std::shared_ptr<Group>& group() const { return group_; }
  lacuna_group_kernel* handle() const { return handle_; }

 private:
  std::shared_ptr<Group> group_;
  lacuna_group_kernel* handle_ = nullptr;
};

/// How many there are, and the most queries and keys of one; 0, 0, 0: a batch of one length.
using SequenceLimits = std::tuple<int, int, int>;

class GroupPlan {
 public:
  GroupPlan(std::shared_ptr<GroupKernel> kernel, const Shape& shape, const std::string& layout,
            int stripe, const std::string& scheme, bool lse, bool strided,
            const std::vector<float>& work, const SequenceLimits& sequences);
  GroupPlan(const GroupPlan&) = delete;
  ~GroupPlan() { lacuna_group_plan_destroy(handle_); }

  std::string json() const { return lacuna_group_plan_json(handle_); }
  /// Of this rank's tensors.
  Shape shape() const;
  std::size_t workspace_bytes() const;
  Target target() const;

 private:
  std::shared_ptr<GroupKernel> kernel_;
  lacuna_group_plan* handle_ = nullptr;
};

void add_group_classes(nb::module_& module);

}  // namespace lacuna_python
