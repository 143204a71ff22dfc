// What callbacks throw passes through no C: the wrapper keeps it, the library lets go of it.
#include <lacuna/lacuna.hpp>
#include <stdexcept>
#include <string>

int main() {
  lacuna::EngineOptions options;
  options.device = "cpu";
  options.on_event = [](const char* event, const char*) { throw std::runtime_error(event); };
  std::string thrown;
  try {
    lacuna::Engine::create(options);
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  lacuna::Status status;
  const bool is_dropped = static_cast<bool>(lacuna::Engine::create(options, status)) && status;

  lacuna_engine_options raw{};
  raw.struct_size = sizeof(raw);
  raw.device = "cpu";
  raw.on_event = [](void*, const char* event, const char*) { throw std::runtime_error(event); };
  lacuna_engine* engine = nullptr;
  const bool is_made = lacuna_engine_create(&raw, &engine) == LACUNA_OK;
  lacuna_engine_destroy(engine);
  return thrown == "device" && is_dropped && is_made ? 0 : 1;
}
