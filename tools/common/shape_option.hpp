// --shape b=1,h=32,h_kv=8,n=32768: the sizes of a problem that has no tensors.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "compiler/emit/launch_program.hpp"

namespace lacuna::tools {

/// Names b, h, h_kv, n_q, n_k; `n` sets both lengths; what is left out keeps its value in `shape`
/// (h_kv follows h). "" or what is wrong with `text`.
std::string parse_shape(const std::string& text, LaunchShape& shape);

/// Adds --shape, which changes `shape`.
void add_shape_option(CLI::App& verb, LaunchShape& shape);

/// "b=1, h=32, h_kv=8, n_q=32768, n_k=32768"
std::string print_shape(const LaunchShape& shape);

}  // namespace lacuna::tools
