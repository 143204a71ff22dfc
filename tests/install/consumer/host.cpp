// The same through the C++ wrapper.
#include <cstdio>
#include <lacuna/lacuna.hpp>
#include <vector>

int main() {
  constexpr int kTokens = 2, kDim = 64;
  std::vector<float> q(kTokens * kDim), k(q), v(q), o(q);
  q[0] = k[0] = q[kDim + 1] = k[kDim + 1] = 100;
  for (int i = 0; i < kDim; ++i) v[i] = 1, v[kDim + i] = 2;
  const auto tensor = [&](std::vector<float>& data) {
    return lacuna::Tensor(data.data(), lacuna::f32, {1, 1, kTokens, kDim});
  };

  lacuna::EngineOptions options;
  options.device = "cpu";
  const auto engine = lacuna::Engine::create(options);
  auto kernel = engine.compile(lacuna::Spec::parse(R"({"version": 1, "name": "dense"})"),
                               {kDim, lacuna::f32});
  kernel.prepare();
  lacuna::LaunchArgs args;
  args.q = tensor(q);
  args.k = tensor(k);
  args.v = tensor(v);
  args.o = tensor(o);
  kernel.launch(args);
  if (o[0] != 1 || o[kDim] != 2) return 1;

  try {
    args.q = lacuna::Tensor();
    kernel.launch(args);
  } catch (const lacuna::Error& e) {
    std::printf("%s", e.what());
    return e.status() == LACUNA_ERROR_INPUT ? 0 : 1;
  }
  return 1;
}
