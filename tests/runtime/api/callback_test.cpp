// Callbacks that throw: through the wrapper the exception reaches the caller, through C it ends at
// the border.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "lacuna/lacuna.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

/// Declares a parameter that nothing reads, which is worth a warning.
const char* const kCallbackSpec =
    R"({"version": 1, "name": "warned", "params": {"unread": {"default": 0}}})";

class Callback : public testing::Test {
 protected:
  EngineOptions options_that_throw_at(const std::string& event) {
    EngineOptions options;
    options.device = "cpu";
    options.on_event = [this, event](const char* got, const char*) {
      events.push_back(got);
      if (got == event) throw std::runtime_error("from the callback");
    };
    return options;
  }

  std::vector<std::string> events;
  const ScopedVariable interpreted{"LACUNA_HOST_PLUGIN", "off"};
};

template <class Call>
std::string thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST_F(Callback, WhatItThrowsLeavesTheCall) {
  EXPECT_EQ(thrown_by([&] { Engine::create(options_that_throw_at("device")); }),
            "from the callback");
  const Engine engine = Engine::create(options_that_throw_at("warnings"));
  EXPECT_EQ(thrown_by([&] {
              engine.compile(Spec::parse(kCallbackSpec), {64, f32});
            }),
            "from the callback");
  EXPECT_EQ(events, (std::vector<std::string>{"device", "device", "warnings"}));
  EXPECT_EQ(engine.device(), "cpu") << "the engine is as good as before";
  EXPECT_EQ(thrown_by([&] {
              engine.compile(Spec::parse(R"({"version": 1, "name": "quiet"})"), {64, f32});
            }),
            "nothing");
}

TEST_F(Callback, OfAnotherEngineKeepsItsExceptionToItself) {
  const Engine outer = Engine::create(options_that_throw_at("warnings"));
  EngineOptions options;
  options.device = "cpu";
  options.on_event = [&](const char*, const char*) {
    EXPECT_EQ(thrown_by([&] {
                outer.compile(Spec::parse(kCallbackSpec), {64, f32});
              }),
              "from the callback");
  };
  EXPECT_EQ(thrown_by([&] { Engine::create(options); }), "nothing");
}

TEST_F(Callback, OfAHostInCGoesNoFurther) {
  lacuna_engine_options options{};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  options.on_event = [](void*, const char*, const char*) { throw 1; };
  lacuna_engine* engine = nullptr;
  EXPECT_EQ(lacuna_engine_create(&options, &engine), LACUNA_OK) << lacuna_last_error();
  lacuna_engine_destroy(engine);
}

TEST_F(Callback, AMovedFromHandleIsAnError) {
  Engine engine = Engine::create(options_that_throw_at(""));
  const Engine other = std::move(engine);
  EXPECT_EQ(thrown_by([&] { engine.device(); }),
            "lacuna: error: engine: expected a handle, got null [E0503]\n");
  EXPECT_EQ(other.device(), "cpu");
}

}  // namespace
}  // namespace lacuna
