// One tensor against one rule: device, dtype, rank, extents, strides, alignment. Used for tensors
// and parameters alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/arguments.hpp"

namespace lacuna {

inline constexpr std::int64_t kAnyExtent = -1;
inline constexpr DLDataType kF32{kDLFloat, 32, 1};
inline constexpr DLDataType kE4M3{kDLFloat8_e4m3fn, 8, 1};
inline constexpr DLDataType kI32{kDLInt, 32, 1};

enum class Layout : unsigned char {
  kRows,         ///< last dimension contiguous; on the GPU 16-byte rows
  kCompact,      ///< row-major without gaps
  kStrided,      ///< any strides
  kDenseInLast,  ///< any strides, but the last dimension contiguous
};

/// What one tensor has to be.
struct TensorRule {
  const char* name = "";
  DLDataType dtype{};
  int rank = 0;
  std::array<const char*, kMaxRank> dims{};      ///< names, for messages
  std::array<std::int64_t, kMaxRank> extents{};  ///< kAnyExtent: any
  Layout layout = Layout::kRows;
  bool is_output = false;
};

/// Collects the mismatches of one launch.
class Mismatches {
 public:
  Mismatches(const LaunchContract& contract, Diagnostics& diagnostics)
      : contract_(contract), diagnostics_(diagnostics) {}

  /// `kernel NAME, argument SUBJECT: TEXT`
  Diagnostic& argument(const char* subject, const std::string& text);
  /// `kernel NAME, parameter SUBJECT: TEXT`
  Diagnostic& parameter(const char* subject, const std::string& text);
  /// `kernel NAME, TEXT`
  Diagnostic& add(Code code, const std::string& text);
  bool any() const { return any_; }
  const LaunchContract& contract() const { return contract_; }

 private:
  const LaunchContract& contract_;
  Diagnostics& diagnostics_;
  bool any_ = false;
};

/// "bf16", "f32", "i64", ...
std::string dtype_name(DLDataType dtype);
std::string device_text(DLDevice device);
DLDataType dl_dtype(DType dtype);

/// Checks everything and fills `bound`. `code` is that of the diagnostics.
void check_tensor(const TensorRule& rule, const DLTensor& tensor, Code code, Mismatches& mismatches,
                  BoundTensor& bound);

}  // namespace lacuna
