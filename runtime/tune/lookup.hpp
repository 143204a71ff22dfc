// Which measured configuration a kernel is compiled with.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/tuning/tuning.hpp"
#include "runtime/tune/bucket.hpp"
#include "runtime/tune/machine.hpp"
#include "runtime/tune/space.hpp"

namespace lacuna::tune {

/// What a kernel is asked for.
struct Question {
  const SpecDocument& document;
  const BuildOptions& options;
  const Hardware& hardware;
  std::optional<LaunchShape> shape;  ///< about which problems; absent: the largest measured
  int threads = 0;                   ///< that the caller fixed; 0: none
};

struct Answer {
  Config config;
  std::string reason;  ///< names the record
};

/// The best record of the nearest bucket whose values the spec leaves open, measured with the kind
/// of compiler that there is. Reads the files of one variant, takes no lock; nothing is found
/// without a cache directory.
struct Lookup {
  std::optional<Answer> answer;
  std::vector<std::string> warnings;  ///< about files that were not read, or not to their end
};
Lookup look_up(const std::string& cache_directory, const Question& question);

/// The same from records of one variant on one hardware by one kind of compiler.
std::optional<Answer> choose_record(std::span<const cache::TuningRecord> records,
                                    const Dimensions& dimensions,
                                    const std::optional<LaunchShape>& shape);

/// Options with what was found; the threads it found, else `question.threads`.
struct TunedOptions {
  BuildOptions options;
  int threads = 0;
  std::vector<std::string> warnings;
};
TunedOptions tuned_options(const std::string& cache_directory, const Question& question);

}  // namespace lacuna::tune
