// NVRTC is found, compiles without a GPU, and its errors lead to the place that #line names.
#include "runtime/cuda/nvrtc.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

CudaSource one_kernel(const std::string& text, const std::vector<std::string>& options) {
  return {"", {{"k", "k", text}}, options};
}

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    Diagnostics diagnostics;
    nvrtc = load_nvrtc(0, diagnostics);
    if (nvrtc == nullptr) GTEST_SKIP() << diagnostics.items.front().message;
  }

  /// A directory of device headers with one header, so that nothing depends on the embedded ones.
  std::string templates() {
    std::filesystem::create_directories(directory.path() / "base");
    std::ofstream(directory.path() / "base/twice.cuh")
        << "#pragma once\n__device__ inline int twice(int x) { return 2 * x; }\n";
    return directory.text();
  }

  std::shared_ptr<const Nvrtc> nvrtc;
  TemporaryDirectory directory;
  Diagnostics errors;
};

TEST_F(NvrtcTest, KnowsWhatItIs) {
  const NvrtcInfo& found = info(*nvrtc);
  EXPECT_GE(found.major, 12);
  EXPECT_TRUE(std::filesystem::exists(found.path)) << found.path;
  EXPECT_EQ(found.build_id.size(), 40U) << found.build_id;
  EXPECT_FALSE(found.searched.empty());
}

TEST_F(NvrtcTest, CompilesWithHeadersFromMemoryAndReportsResources) {
  const CudaSource source = one_kernel(
      "#include \"base/twice.cuh\"\n"
      "extern \"C\" __global__ void shared_twice(int* p) {\n"
      "  __shared__ int x[64];\n"
      "  x[threadIdx.x] = p[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  p[threadIdx.x] = twice(x[63 - threadIdx.x]);\n}\n",
      {"-arch=sm_80", "-std=c++17"});
  const Compilation out = compile_cuda(*nvrtc, source, "sm_80",
                                       {.template_path = templates(), .want_ptx = true}, errors);
  ASSERT_FALSE(errors.has_errors()) << render(errors, {});
  ASSERT_EQ(out.cubins.size(), 1U);
  EXPECT_EQ(out.cubins[0].substr(0, 4),
            "\x7f"
            "ELF");
  ASSERT_EQ(out.ptx.size(), 1U);
  EXPECT_NE(out.ptx[0].find(".target sm_80"), std::string::npos);
  EXPECT_GT(out.compile_ms, 0);
  ASSERT_EQ(out.kernels.size(), 1U);
  EXPECT_EQ(out.kernels[0].name, "shared_twice");
  EXPECT_GT(out.kernels[0].registers, 0);
  EXPECT_EQ(out.kernels[0].spill_bytes, 0);
  EXPECT_EQ(out.kernels[0].smem_bytes, 256);
}

TEST_F(NvrtcTest, TheSameSourceGivesTheSameCubin) {
  const CudaSource source =
      one_kernel("extern \"C\" __global__ void k(int* p) { *p = 1; }", {"-arch=sm_90a"});
  const Compilation a =
      compile_cuda(*nvrtc, source, "sm_90a", {.template_path = templates()}, errors);
  const Compilation b =
      compile_cuda(*nvrtc, source, "sm_90a", {.template_path = templates()}, errors);
  EXPECT_FALSE(a.cubins.empty());
  EXPECT_EQ(a.cubins, b.cubins);
  EXPECT_TRUE(a.ptx.empty());
}

TEST_F(NvrtcTest, ErrorsNameThePlaceGivenByLine) {
  const CudaSource source = one_kernel(
      "extern \"C\" __global__ void k(int* p) {\n#line 12 \"specs/x.json\"\n  *p = nothing;\n}\n",
      {"-arch=sm_80"});
  const Compilation out =
      compile_cuda(*nvrtc, source, "sm_80", {.template_path = templates()}, errors);
  EXPECT_TRUE(out.cubins.empty());
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].code, Code::kNvrtcFailed);
  EXPECT_NE(errors.items[0].message.find("cannot compile the kernel for sm_80"), std::string::npos);
  ASSERT_FALSE(errors.items[0].notes.empty());
  EXPECT_EQ(errors.items[0].notes[0],
            "specs/x.json(12): error: identifier \"nothing\" is undefined");
}

/// Kernels k0, k1, ... with these bodies, and a head of two lines.
CudaSource several_kernels(const std::vector<std::string>& bodies) {
  CudaSource source{"struct Args { int* p; };\n#define OUT (*args.p)\n", {}, {"-arch=sm_80"}};
  for (const std::string& body : bodies) {
    const std::string entry = "k" + std::to_string(source.kernels.size());
    source.kernels.push_back({entry, entry,
                              "extern \"C\" __global__ void " + entry +
                                  "(Args args) {\n#line 1 \"" + entry + ".json\"\n" + body +
                                  "\n}\n"});
  }
  return source;
}

TEST_F(NvrtcTest, EachKernelIsAProgramWhateverTheThreads) {
  const CudaSource source =
      several_kernels({"OUT = 1;", "OUT = args.p[1];", "OUT = args.p[2] / args.p[1];"});
  const Compilation one =
      compile_cuda(*nvrtc, source, "sm_80", {.want_ptx = true, .threads = 1}, errors);
  const Compilation four =
      compile_cuda(*nvrtc, source, "sm_80", {.want_ptx = true, .threads = 4}, errors);
  ASSERT_FALSE(errors.has_errors()) << render(errors, {});
  ASSERT_EQ(one.cubins.size(), 3U);
  ASSERT_EQ(one.kernels.size(), 3U);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(one.kernels[n].name, source.kernels[n].entry);
    EXPECT_NE(one.ptx[n].find(".visible .entry " + source.kernels[n].entry), std::string::npos);
    EXPECT_NE(one.cubins[n].find(source.kernels[n].entry), std::string::npos);
  }
  EXPECT_EQ(four.cubins, one.cubins);
  EXPECT_EQ(four.ptx, one.ptx);
  // The logs tell the time that each kernel took: never the same.
  EXPECT_EQ(four.log.find('\0'), std::string::npos);
  EXPECT_LT(four.log.find("'k0'"), four.log.find("'k1'"));
  EXPECT_LT(four.log.find("'k1'"), four.log.find("'k2'"));
}

TEST_F(NvrtcTest, TheFirstKernelInOrderThatFailsIsReported) {
  const CudaSource source =
      several_kernels({"OUT = 1;", "OUT = absent;", "OUT = 1;", "OUT = missing;"});
  for (int repeat = 0; repeat < 5; ++repeat) {
    Diagnostics found;
    const Compilation out = compile_cuda(*nvrtc, source, "sm_80", {.threads = 4}, found);
    EXPECT_TRUE(out.cubins.empty());
    EXPECT_TRUE(out.kernels.empty());
    ASSERT_EQ(found.items.size(), 1U);
    EXPECT_EQ(found.items[0].notes[0], "k1.json(1): error: identifier \"absent\" is undefined");
    EXPECT_LT(out.log.find("absent"), out.log.find("missing"));
  }
}

TEST_F(NvrtcTest, AnErrorInTheHeadIsReportedOnce) {
  CudaSource source = several_kernels({"OUT = 1;", "OUT = 2;"});
  source.head += "#line 7 \"specs/x.json\"\n__device__ int wrong = nothing;\n";
  compile_cuda(*nvrtc, source, "sm_80", {}, errors);
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].notes[0],
            "specs/x.json(7): error: identifier \"nothing\" is undefined");
}

TEST_F(NvrtcTest, AnUnknownArchitectureIsAnError) {
  const CudaSource source = one_kernel("extern \"C\" __global__ void k() {}", {"-arch=sm_1"});
  const Compilation out =
      compile_cuda(*nvrtc, source, "sm_1", {.template_path = templates()}, errors);
  EXPECT_TRUE(out.cubins.empty());
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].code, Code::kNvrtcFailed);
}

TEST_F(NvrtcTest, ATemplatePathWithoutHeadersIsAnError) {
  const CudaSource source = one_kernel("extern \"C\" __global__ void k() {}", {});
  compile_cuda(*nvrtc, source, "sm_80", {.template_path = "/nonexistent/templates"}, errors);
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].message,
            "template path: expected a directory with .cuh headers, got /nonexistent/templates (No "
            "such file or "
            "directory)");
}

TEST_F(NvrtcTest, TheEnvironmentNamesTheLibrary) {
  const std::string path = info(*nvrtc).path;
  const ScopedVariable variable("LACUNA_NVRTC_PATH", path.c_str());
  const auto named = load_nvrtc(0, errors);
  ASSERT_NE(named, nullptr);
  EXPECT_EQ(info(*named).path, path);
  EXPECT_EQ(info(*named).searched, std::vector<std::string>{"LACUNA_NVRTC_PATH=" + path});
}

TEST(NvrtcMissing, AWrongPathIsReportedAndNothingElseIsTried) {
  const ScopedVariable variable("LACUNA_NVRTC_PATH", "/nonexistent/libnvrtc.so.13");
  Diagnostics errors;
  EXPECT_EQ(load_nvrtc(0, errors), nullptr);
  EXPECT_EQ(render(errors, {"lacuna", ""}),
            "lacuna: error: no NVRTC: libnvrtc.so.13 or libnvrtc.so.12 was not found [E0705]\n"
            "note: looked at LACUNA_NVRTC_PATH=/nonexistent/libnvrtc.so.13: nothing there\n"
            "help: install the CUDA toolkit or the Python wheel nvidia-cuda-nvrtc, or name the "
            "library in LACUNA_NVRTC_PATH\n");
}

TEST(NvrtcMissing, ALibraryThatIsNotNvrtcIsRefusedWithTheReason) {
  const ScopedVariable variable("LACUNA_NVRTC_PATH", "/lib/x86_64-linux-gnu/libc.so.6");
  Diagnostics errors;
  EXPECT_EQ(load_nvrtc(0, errors), nullptr);
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].notes,
            std::vector<std::string>{"looked at LACUNA_NVRTC_PATH=/lib/x86_64-linux-gnu/libc.so.6: "
                                     "it lacks entry points of NVRTC 12"});
}

TEST_F(NvrtcTest, OneNewerThanTheDriverIsRefused) {
  const int older = info(*nvrtc).major - 1;
  const ScopedVariable variable("LACUNA_NVRTC_PATH", info(*nvrtc).path.c_str());
  EXPECT_EQ(load_nvrtc(older, errors), nullptr);
  ASSERT_EQ(errors.items.size(), 1U);
  EXPECT_EQ(errors.items[0].message, "no NVRTC that the driver can serve (CUDA " +
                                         std::to_string(older) + " or older) was found");
  EXPECT_EQ(errors.items[0].notes[0], "looked at LACUNA_NVRTC_PATH=" + info(*nvrtc).path +
                                          ": version " + std::to_string(older + 1) +
                                          " is newer than the driver's CUDA " +
                                          std::to_string(older));
}

}  // namespace
}  // namespace lacuna
