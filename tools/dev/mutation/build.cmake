# The build of the mutants is a release, so that a compiler cache has most of it, but for two things; included by project() of the copy.
# - Each mutant links several programs anew: by lld, where it is there, in a quarter of the time.
# - The command is the largest unit of all, and what it computes takes no time: file by file, without optimisation.
find_program(LACUNA_LLD ld.lld)
if(LACUNA_LLD)
  add_link_options(-fuse-ld=lld)
endif()
function(lacuna_mutants_build)
  foreach(library lacuna_tools lacuna_cli)
    set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
    target_compile_options(${library} PRIVATE -O0)
    target_compile_definitions(${library} PRIVATE _GLIBCXX_ASSERTIONS)
  endforeach()
endfunction()
cmake_language(DEFER CALL lacuna_mutants_build)
