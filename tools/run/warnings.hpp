// What a run finds that its author should know: values that are not finite, rules that decide
// nothing.
#pragma once

#include <string>
#include <vector>

#include "tools/inputs/inputs.hpp"
#include "tools/run/result.hpp"

namespace lacuna::tools {

/// Elements of an array of [batch, heads, n_q, d] that are NaN or infinite.
std::int64_t count_not_finite(const Array& array);

/// One sentence each.
std::vector<std::string> warnings_of(const SpecDocument& document, const Inputs& inputs,
                                     const RunResult& result);

/// "" or the first fall of a tensor that the spec declares monotone: "start: value 3 at ...".
std::string broken_promise(const VariantSpec& spec, const Inputs& inputs);

}  // namespace lacuna::tools
