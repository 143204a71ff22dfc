# Writes OUT: a C++ file with every header under ROOT as a raw string, named as #include names it.
file(GLOB_RECURSE headers RELATIVE ${ROOT} ${ROOT}/*.cuh)
list(SORT headers)
set(text "#include \"compiler/emit/emit.hpp\"\n\nnamespace lacuna {\n\nconst std::vector<EmbeddedHeader>& embedded_headers() {\n  static const std::vector<EmbeddedHeader> headers = {\n")
foreach(header IN LISTS headers)
  file(READ ${ROOT}/${header} body)
  # A string literal may hold at most 64 KiB; headers are far smaller.
  string(APPEND text "      {\"${header}\", R\"LACUNA(${body})LACUNA\"},\n")
endforeach()
string(APPEND text "  };\n  return headers;\n}\n\n}  // namespace lacuna\n")
file(WRITE ${OUT} "${text}")
