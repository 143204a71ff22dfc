// Tensors of a value set: generated, or of its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/emit/launch_program.hpp"
#include "tools/common/session.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/measure/value_sets.hpp"

namespace lacuna::tools {

/// A value set with the tensors of its file, if it has one.
struct ValueSource {
  ValueSet set;
  std::string name =
      "normal";  ///< for reports and records; of a file also what identifies its bytes
  std::optional<Inputs> file{};  ///< of kFile
};

/// Reads the file of the set. Nothing if it cannot be read or its tensors do not go together, which
/// has then been reported.
std::optional<ValueSource> open_values(const ValueSet& set, Session& session);

/// "" or why the file cannot serve a problem of this shape. Heads are repeated, query heads beside
/// their KV head; of the tokens the first n_k keys are taken and the queries that end with them. No
/// token is repeated. What is generated serves every shape.
/// `head_dim_v`: elements of a row of v, 0: as head_dim; of a file's rows the first are taken.
std::string check_fits(const ValueSource& source, const LaunchShape& shape, int head_dim,
                       int head_dim_v = 0);

/// q, k and v of a problem, which the source fits. Generated values follow the seed.
Inputs make_inputs(const ValueSource& source, const LaunchShape& shape, int head_dim, DType dtype,
                   std::uint64_t seed, int head_dim_v = 0);

}  // namespace lacuna::tools
