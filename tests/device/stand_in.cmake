# A generated kernel.cu -> what g++ compiles in its place. cmake -DGENERATED=... -DTEMPLATE=... -DSYMBOL=... -DOUTPUT=...
# writes OUTPUT.headers, the device headers that it includes; OUTPUT.cu, the rest, whose entries may stay in an unnamed namespace
# (extern "C" would leave it: specs share their names); and OUTPUT.kernels with the table of entries.
file(READ ${GENERATED} text)
string(REPLACE "extern \"C\" __global__" "__global__" text "${text}")
string(REGEX MATCHALL "#include \"[^\n]*\n" headers "${text}")
string(REGEX REPLACE "#include \"[^\n]*\n" "\n" text "${text}")
list(JOIN headers "" headers)
string(REGEX MATCHALL "lacuna_[a-z0-9_]+\\(const __grid_constant__" entries "${text}")
set(KERNEL_ENTRIES "")
foreach(entry ${entries})
  string(REPLACE "(const __grid_constant__" "" entry ${entry})
  string(APPEND KERNEL_ENTRIES
    "    {\"${entry}\", {[](const void* args) { ${entry}(*static_cast<const Args*>(args)); }, lacuna::block_smem}},\n")
endforeach()
set(KERNEL_SOURCE ${OUTPUT}.cu)
set(KERNEL_SYMBOL ${SYMBOL})
# Only what is new is written: a change of the command leaves most kernels as they are.
file(WRITE ${OUTPUT}.new "${headers}")
configure_file(${OUTPUT}.new ${OUTPUT}.headers COPYONLY)
file(WRITE ${OUTPUT}.new "${text}")
configure_file(${OUTPUT}.new ${OUTPUT}.cu COPYONLY)
configure_file(${TEMPLATE} ${OUTPUT}.kernels @ONLY)
