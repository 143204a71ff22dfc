// What `run` computes on: q, k, v and the parameters, from files or from the shipped sample.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/spec.hpp"
#include "tools/io/array.hpp"

namespace lacuna::tools {

/// Parameters from a file of `calibrate` (calibration.hpp).
struct CalibrationOptions {
  std::string path;         ///< empty: none
  std::optional<int> kept;  ///< the table for this number of kept tiles, in place of the choice
};

struct InputOptions {
  std::string input;                ///< safetensors with q, k, v; empty: the shipped sample
  std::string q, k, v;              ///< .npy files, all three, in place of `input`
  std::vector<std::string> params;  ///< "name=0.5", "name=@file.npy", "name=@file.safetensors"
  CalibrationOptions calibration;   ///< for parameters that are not assigned
  std::string order;                ///< .npy of the token order, for "permute": "external"
  std::string tile_mask;            ///< .npy of the tiles to visit, for "mask": "external"
  std::optional<DType> dtype;       ///< to convert q, k and v to; absent: as they are
};

struct ParamInput {
  std::string name;
  std::optional<Array> tensor;  ///< f32 or i32; absent: `value`
  double value = 0;
  std::string origin;  ///< as shown: "0.5", or the file
};

struct Inputs {
  std::string origin;             ///< as shown: the file, or files
  Array q, k, v;                  ///< [batch, heads, tokens, head_dim], of one of bf16, f16, f32
  bool v_of_k = false;            ///< v is the first elements of k: launches pass none
  std::size_t rank = 4;           ///< of q as read: 2 to 4
  std::int64_t v_not_finite = 0;  ///< tokens of v, over all heads, with NaN or infinity
  std::vector<ParamInput> params;
  std::optional<Array> order;      ///< i32 [tokens]
  std::optional<Array> tile_mask;  ///< u8 [batch, heads, q_tiles, k_tiles], 0: not visited
};

/// The element type of tensors of this dtype.
ArrayType array_type(DType dtype);

/// The first `width` elements of each row; all of them where rows are no wider.
Array first_elements(const Array& rows, std::int64_t width);

/// Where the spec takes v from k: v becomes the first head_dim_v elements of k (0: all of them).
void take_v_of_k(const VariantSpec& spec, int head_dim_v, Inputs& inputs);

}  // namespace lacuna::tools
