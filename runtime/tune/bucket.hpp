// Keys of the tuning database: which measurements serve which problems.
#pragma once

#include <optional>
#include <string>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna::tune {

/// Problems of about the same size, powers of two but for the heads that share keys.
struct Bucket {
  int rows = 0;          ///< log2 of batch * heads
  int group = 1;         ///< heads / heads_kv
  int n_q = 0, n_k = 0;  ///< log2
  bool operator==(const Bucket&) const = default;
};
Bucket bucket_of(const LaunchShape& shape);

std::string print_bucket(const Bucket& bucket);  ///< "rows=32 group=4 n_q=8192 n_k=8192"
std::optional<Bucket> parse_bucket(const std::string& text);

/// How little a measurement in one bucket says about another: doublings between their sizes, the
/// lengths counting most.
double distance(const Bucket& a, const Bucket& b);

/// log2 of the pairs of tokens.
int work_of(const Bucket& bucket);

/// "1", "1/2", "1/4", ... "1/128": the power of two nearest to the share of tiles visited.
std::string density_bucket(double density);
double density_of(const std::string& bucket);  ///< 0 if it is none

/// Hash of all that decides which kernel it is, besides what a tuner varies.
std::string variant_of(const VariantSpec& spec, const BuildOptions& options);

/// A file name for the hardware: "x86-64-amd-epyc-2", "nvidia-h200-132".
std::string hardware_name(const std::string& device_name, int processors);

}  // namespace lacuna::tune
