// The reader of machine code listings: instructions, branches, loops and the shortest way through.
#include "tests/sass/listing.hpp"

#include <gtest/gtest.h>

namespace lacuna::sass {
namespace {

constexpr const char* kListing = R"(
	.section	.text.first,"ax",@progbits
        .size           first,(.L_x_9 - first)
first:
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_0:
        /*0010*/                   FFMA R2, R2.reuse, R3, -R12 ;
        /*0020*/              @!P0 BRA `(.L_x_1) ;
        /*0030*/                   MUFU.EX2 R4, R2 ;
        /*0040*/                   MUFU.EX2 R5, R2 ;
.L_x_1:
        /*0050*/                   BSSY B0, `(.L_x_2) ;
        /*0060*/               @P1 BRA `(.L_x_0) ;
.L_x_2:
        /*0070*/                   EXIT ;
        /*0080*/                   BRA `(.L_x_2) ;
//--------------------- .text.second --------------------------
.text.second:
        /*0000*/                   STG.E.128 desc[UR48][R16.64], R8 ;
)";

bool is_exp2(const Instruction& i) { return i.is("MUFU.EX2"); }
bool is_branch(const Instruction& i) { return i.is("BRA"); }

TEST(Listing, OfSeveralKernels) {
  const std::vector<Kernel> kernels = parse_listing(kListing);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[0].code.size(), 9u);
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].code.size(), 1u);
}

TEST(Listing, InstructionsHaveTheirParts) {
  const Code code = parse_listing(kListing)[0].code;
  EXPECT_EQ(code[2].guard, "@!P0");
  EXPECT_EQ(code[2].opcode, "BRA");
  EXPECT_EQ(code[1].operands, "R2, R2.reuse, R3, -R12");
  EXPECT_EQ(code[2].text(), "@!P0 BRA `(.L_x_1)");
  EXPECT_TRUE(code[3].is("MUFU"));
  EXPECT_TRUE(code[3].is("MUFU.EX2"));
  EXPECT_FALSE(code[3].is("MUF"));
}

TEST(Listing, BranchesHaveTargets) {
  const Code code = parse_listing(kListing)[0].code;
  EXPECT_EQ(code[2].target, 5u);
  EXPECT_EQ(code[6].target, 1u);
  EXPECT_EQ(code[5].target, kNowhere) << "threads meet there again, none jumps";
}

TEST(Listing, RegistersAreThoseOfThreads) {
  const std::vector<Kernel> kernels = parse_listing(kListing);
  EXPECT_EQ(registers_of(kernels[0].code[1]), (std::vector{2, 2, 3, 12}));
  EXPECT_EQ(registers_of(kernels[1].code[0]), (std::vector{16, 8})) << "UR48 is the warp's";
  EXPECT_EQ(registers_of({"", "HGMMA", "R24, gdesc[UR8], RZ, !UPT"}), std::vector{24});
}

TEST(Listing, TheShortestLoopIsFound) {
  const Code code = parse_listing(kListing)[0].code;
  const Loop endless = find_loop(code, {is_branch});
  EXPECT_EQ(endless.first, 1u);
  EXPECT_EQ(endless.last, 6u);
  EXPECT_EQ(find_loop(code, {is_branch, is_exp2}).first, 1u);
  EXPECT_FALSE(find_loop(code, {[](const Instruction& i) { return i.is("LDC"); }}).exists());
}

TEST(Listing, TheShortestWayLeavesOutWhatABranchPasses) {
  const Code code = parse_listing(kListing)[0].code;
  EXPECT_EQ(shortest_way(code, 1, 6), (std::vector<std::size_t>{1, 2, 5, 6}));
  EXPECT_TRUE(shortest_way(code, 7, 8).empty()) << "nothing goes on behind EXIT";
}

TEST(Listing, WhatIsReachedEndsWhereItStops) {
  using Indices = std::vector<std::size_t>;
  const Code code = parse_listing(kListing)[0].code;
  const auto never = [](const Instruction&) { return false; };
  EXPECT_EQ(reached_behind(code, 3, never), (Indices{1, 2, 3, 4, 5, 6, 7})) << "round the loop";
  EXPECT_EQ(reached_behind(code, 3, is_branch), (Indices{4, 5}));
  EXPECT_EQ(reached_before(code, 3, is_branch), Indices());
  EXPECT_EQ(reached_before(code, 2, is_branch), (Indices{0, 1}));
  EXPECT_EQ(reached_before(code, 5, is_exp2), (Indices{0, 1, 2, 5, 6}));
}

TEST(Listing, OfNothingHasNoKernels) { EXPECT_TRUE(parse_listing("").empty()); }

}  // namespace
}  // namespace lacuna::sass
