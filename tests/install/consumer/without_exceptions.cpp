// A host without exceptions: every call leaves a Status, and what is not there says so.
#include <array>
#include <cstdio>
#include <lacuna/lacuna.hpp>
#include <span>
#include <vector>

int main() {
  lacuna::Status status;
  const lacuna::Kernel none;
  none.launch({}, status);
  if (none || status.code != LACUNA_ERROR_INPUT) return 1;

  const auto refused = lacuna::Engine::create({.device = "gpu"}, status);
  if (refused || status || status.text.empty()) return 2;
  const auto engine = lacuna::Engine::create({.device = "cpu"}, status);
  if (!engine || !status) return 3;
  engine.add_kernels("no bundle", 9, status);
  if (status.code != LACUNA_ERROR_INPUT) return 4;

  const auto spec = lacuna::Spec::parse(R"({"version": 1, "name": "dense"})");
  const lacuna::Kernel bad = engine.compile(spec, {.head_dim = 3}, status);
  if (bad || status) return 5;
  lacuna::Kernel kernel = engine.compile(spec, {.head_dim = 64, .dtype = lacuna::f32}, status);
  if (!kernel || !status) return 6;
  kernel.prepare(status);
  if (!status) return 7;

  const std::vector<float> ones(2 * 64, 1.0F);
  std::vector<float> o(ones.size());
  const std::array<std::int64_t, 4> shape = {1, 1, 2, 64};
  const std::span<const std::int64_t> extents(shape);
  const lacuna::Tensor q(ones.data(), lacuna::f32, extents);
  kernel.launch({.q = q, .k = q, .v = q, .o = {o.data(), lacuna::f32, extents}}, status);
  if (!status || o[0] != 1.0F) return 8;
  const std::array<std::int64_t, 5> too_many = {1, 1, 1, 2, 64};
  kernel.launch({.q = {ones.data(), lacuna::f32, std::span<const std::int64_t>(too_many)},
                 .k = q,
                 .v = q,
                 .o = {o.data(), lacuna::f32, extents}},
                status);
  std::printf("%s", status.text.c_str());
  return status.code == LACUNA_ERROR_INPUT ? 0 : 9;
}
