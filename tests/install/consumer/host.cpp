// The same through the C++ wrapper.
#include <cstdio>
#include <lacuna/lacuna.hpp>
#include <stdexcept>
#include <string>
#include <vector>

/// What callbacks throw passes through no C: the wrapper keeps it, the library lets go of it.
bool callbacks_may_throw() {
  lacuna::EngineOptions options;
  options.device = "cpu";
  options.on_event = [](const char* event, const char*) { throw std::runtime_error(event); };
  std::string thrown;
  try {
    lacuna::Engine::create(options);
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  lacuna_engine_options raw{};
  raw.struct_size = sizeof(raw);
  raw.device = "cpu";
  raw.on_event = [](void*, const char* event, const char*) { throw std::runtime_error(event); };
  lacuna_engine* engine = nullptr;
  const bool is_made = lacuna_engine_create(&raw, &engine) == LACUNA_OK;
  lacuna_engine_destroy(engine);
  return thrown == "device" && is_made;
}

int main() {
  if (!callbacks_may_throw()) return 1;
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
