// Fields of a Config, as the lowerings write them.
#pragma once

#include "compiler/lower/kernel.hpp"
#include "compiler/lower/launch_text.hpp"

namespace lacuna {

inline constexpr const char* kNoField = "";  ///< no field of the spec

ConfigField integer(const char* name, int value, const char* pointer,
                    Origin origin = Origin::kDefault, std::string reason = "");
ConfigField boolean(const char* name, bool value, const char* pointer,
                    Origin origin = Origin::kDefault, std::string reason = "");
ConfigField number(const char* name, float value, const char* pointer,
                   Origin origin = Origin::kDefault, std::string reason = "");
/// A value of a device enum: "lacuna::GateScope::kTile".
ConfigField enumerator(const char* type, const char* name, const char* value, const char* pointer,
                       Origin origin = Origin::kDefault, std::string reason = "");
/// With the origin and reason that the plan has.
ConfigField integer(const char* name, const Chosen<int>& chosen, const char* pointer);

// Fields that several kernels have.
/// kBatch, unless it is uniform; then also what of attend's tensors lies in the workspace.
void add_batch_fields(const Program& program, std::vector<ConfigField>& fields);
/// Of a kernel whose keys and values are codes of e4m3.
void add_code_field(std::vector<ConfigField>& fields);
ConfigField tensor_field(Tensor tensor);
ConfigField predictor_tile_q(int tile);
ConfigField predictor_tile_k(int tile);
ConfigField has_mask(const Expr& mask);
ConfigField split_kv_field(const AttendPlan& chosen);
/// Of who reads the classes of tiles that their pairs decide about (lower/predict/pairs.cpp); none
/// where bounds do.
void add_pair_fields(const Attend& attend, std::vector<ConfigField>& fields);
/// The same of a kernel that decides about the tiles of `select`, and how large the tiles of attend
/// are that have classes. Such a kernel asks the pairs of cells and of gathered columns by itself.
void add_pair_fields(const Attend& attend, const Select& select, std::vector<ConfigField>& fields);
/// Of who writes a row's results; only where they differ from plain softmax with a natural lse.
void add_weight_kind(const Attend& attend, std::vector<ConfigField>& fields);
void add_row_end_fields(const Attend& attend, std::vector<ConfigField>& fields);

/// The device's names.
const char* group_name(QuantGroup group);
const char* normalise_name(Normalise normalise);
const char* scope_name(const std::optional<Gate>& gate);

}  // namespace lacuna
