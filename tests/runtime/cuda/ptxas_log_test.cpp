// The resources that ptxas reports, read from its log.
#include "runtime/cuda/ptxas_log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lacuna {
namespace {

TEST(PtxasLog, ReadsEachEntryFunction) {
  const char* log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    24 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 24 bytes cumulative stack size, 1024 "
      "bytes smem, 380 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "    16 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Function properties for called_by_second\n"
      "    32 bytes stack frame, 2 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers, 380 bytes cmem[0]\n";
  const std::vector<KernelResources> kernels = parse_ptxas_log(log);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[0].registers, 168);
  EXPECT_EQ(kernels[0].stack_bytes, 24);
  EXPECT_EQ(kernels[0].spill_bytes, 20);
  EXPECT_EQ(kernels[0].smem_bytes, 1024);
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].registers, 8);
  EXPECT_EQ(kernels[1].stack_bytes, 48) << "of the kernel and of what it calls";
  EXPECT_EQ(kernels[1].spill_bytes, 6);
  EXPECT_EQ(kernels[1].smem_bytes, 0);
}

TEST(PtxasLog, ComplaintsAreFoundWhateverTheirCode) {
  const std::string serialised =
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources in function 'first'";
  const std::string ignored =
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain "
      "minimum register requirement.";
  const std::string divergent =
      "ptxas info    : (C7520) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to program dependence on compiler-inserted WG.AR in divergent path in the "
      "function 'first'";
  const std::string injected =
      "ptxas info    : (C7519) warpgroup.arrive is injected in around line 28 by compiler to allow "
      "use of registers in GMMA in function 'first'";
  EXPECT_EQ(find_ptxas_complaints("ptxas info    : 0 bytes gmem\n" + serialised + "\n" + ignored +
                                  "\n" + injected + "\n" + divergent),
            (std::vector{serialised, ignored, divergent}));
  EXPECT_TRUE(find_ptxas_complaints("ptxas info    : Used 168 registers\n").empty());
}

TEST(PtxasLog, AnEmptyLogHasNoKernels) { EXPECT_TRUE(parse_ptxas_log("").empty()); }

}  // namespace
}  // namespace lacuna
