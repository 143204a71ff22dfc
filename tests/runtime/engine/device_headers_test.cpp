// Device headers: the embedded ones, or all .cuh files of a directory.
#include "runtime/cuda/device_headers.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime/engine/build/build.hpp"
#include "runtime/engine/engine.hpp"
#include "tests/runtime/scoped_variable.hpp"
#include "tests/runtime/temporary_directory.hpp"

namespace lacuna {
namespace {

std::string refusal_of(const std::string& template_path) {
  Diagnostics diagnostics;
  EXPECT_TRUE(device_headers(template_path, diagnostics).empty());
  return render(diagnostics, {"a.json", ""});
}

std::string refusal_text(const std::string& path, const std::string& problem) {
  return "a.json: error: template path: expected a directory with .cuh headers, got " + path +
         " (" + problem + ") [E0709]\n";
}

TEST(DeviceHeaders, AreEmbeddedAndSortedByName) {
  Diagnostics diagnostics;
  const auto headers = device_headers("", diagnostics);
  EXPECT_TRUE(diagnostics.items.empty());
  const auto name_of_header = [](const DeviceHeader& header) { return header.name; };
  EXPECT_TRUE(std::ranges::is_sorted(headers, {}, name_of_header));
  EXPECT_TRUE(std::ranges::count(headers, "attend/mma/attend_mma.cuh", name_of_header) == 1);
  for (const DeviceHeader& header : headers) EXPECT_NE(header.text, "") << header.name;
}

TEST(DeviceHeaders, AreReadFromADirectoryWithItsFolders) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "tile");
  std::ofstream(directory.path() / "z.cuh") << "// z\n";
  std::ofstream(directory.path() / "tile/a.cuh") << "// a\n";
  std::ofstream(directory.path() / "README.md") << "not a header\n";
  Diagnostics diagnostics;
  const auto headers = device_headers(directory.text(), diagnostics);
  EXPECT_TRUE(diagnostics.items.empty());
  ASSERT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers[0].name, "tile/a.cuh");
  EXPECT_EQ(headers[0].text, "// a\n");
  EXPECT_EQ(headers[1].name, "z.cuh");
}

TEST(DeviceHeaders, OfAMissingDirectory) {
  EXPECT_EQ(refusal_of("/nonexistent/templates"),
            refusal_text("/nonexistent/templates", "No such file or directory"));
}

TEST(DeviceHeaders, OfAnEmptyDirectory) {
  const TemporaryDirectory directory;
  EXPECT_EQ(refusal_of(directory.text()), refusal_text(directory.text(), "no .cuh file in it"));
}

TEST(DeviceHeaders, OfAFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.text() + "/one.cuh";
  std::ofstream(file.c_str()) << "// one\n";
  EXPECT_EQ(refusal_of(file), refusal_text(file, "Not a directory"));
}

TEST(DeviceHeaders, OfAPipeOrAFileWithoutEnd) {
  const TemporaryDirectory directory;
  const std::string header = directory.text() + "/x.cuh";
  const std::string text = refusal_text(directory.text(), header + " is no file of at most 1 MiB");
  ASSERT_EQ(::mkfifo(header.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(directory.text()), text);
  std::filesystem::remove(header);
  std::filesystem::create_symlink("/dev/zero", header);
  EXPECT_EQ(refusal_of(directory.text()), text);
}

TEST(DeviceHeaders, TheEnvironmentNamesTheDirectoryAndTheBuildRefusesIt) {
  const TemporaryDirectory directory;
  const ScopedVariable variable("LACUNA_TEMPLATE_PATH", directory.text().c_str());
  Diagnostics errors;
  const EngineSettings settings = engine_settings({}, errors);
  EXPECT_EQ(settings.template_path, directory.text());
  const auto nvrtc = load_nvrtc(0, errors);
  if (nvrtc == nullptr) GTEST_SKIP() << errors.items.front().message;
  const SpecDocument document = read_spec({"a.json", R"({"version": 1, "name": "dense"})"}, errors);
  const Plan plan = make_plan(document, {64, DType::kBF16}, *find_target("sm_80"), errors);
  const BuiltKernel built =
      build_kernel({plan, document, at_hand(nvrtc), nullptr, settings.template_path}, errors);
  EXPECT_TRUE(built.entry.cubins.empty());
  EXPECT_EQ(render(errors, document.source), refusal_text(directory.text(), "no .cuh file in it"));
}

}  // namespace
}  // namespace lacuna
