// Fields that only some Configs have. A generated file writes them only for kernels that need them,
// so that the text of every other kernel, and its entry in the kernel cache, stay the same.
#pragma once

/// Declares name<Config>(), a `Type`: Config::kField, or `absent` where a Config does not say.
/// (A function, because NVRTC keeps a global for each constant of a class.)
#define LACUNA_OPTIONAL_FIELD(Type, name, kField, absent)    \
  template <class Config>                                    \
  constexpr decltype(Config::kField) name##_or_absent(int) { \
    return Config::kField;                                   \
  }                                                          \
  template <class Config>                                    \
  constexpr Type name##_or_absent(...) {                     \
    return absent;                                           \
  }                                                          \
  template <class Config>                                    \
  constexpr Type name() {                                    \
    return static_cast<Type>(name##_or_absent<Config>(0));   \
  }
