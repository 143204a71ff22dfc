#include "tests/tools/problem.hpp"

#include <random>

namespace lacuna::tests {

tools::Safetensors small_problem(std::int64_t heads, std::int64_t tokens, std::int64_t d,
                                 tools::ArrayType type) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto tensor = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count * tokens * d));
    for (float& value : values) value = normal(random);
    return tools::from_f32(values, {count, tokens, d}, type);
  };
  tools::Safetensors file;
  file.tensors["q"] = tensor(heads);
  file.tensors["k"] = tensor(1);
  file.tensors["v"] = tensor(1);
  return file;
}

}  // namespace lacuna::tests
