# The build of the mutants differs from a release in what it costs, not in what it does: included by project() of the copy.
# - Libraries are compiled file by file, as a mutant is in one of them; tests in large units, as they only meet changed headers.
# - What computes nothing large is compiled with little optimisation.
# - What the sanitized builds test has their checks of the standard library: so an empty optional that is read is found here too.
# - Each mutant links several programs anew: by lld, where it is there, in a quarter of the time.
find_program(LACUNA_LLD ld.lld)
if(LACUNA_LLD)
  add_link_options(-fuse-ld=lld)
endif()
function(lacuna_mutants_build)
  foreach(library lacuna_compiler lacuna_cache lacuna_runtime lacuna_readers lacuna_tools lacuna_host)
    if(TARGET ${library})
      set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
    endif()
  endforeach()
  foreach(library lacuna_compiler lacuna_cache lacuna_readers lacuna_host)
    if(TARGET ${library})
      target_compile_options(${library} PRIVATE -O1)
    endif()
  endforeach()
  foreach(library lacuna_tools lacuna_cli)  # the longest to compile
    target_compile_options(${library} PRIVATE -O0)
  endforeach()
  foreach(library lacuna_compiler lacuna_cache lacuna_readers lacuna_runtime)
    target_compile_definitions(${library} PRIVATE _GLIBCXX_ASSERTIONS)
  endforeach()
endfunction()
cmake_language(DEFER CALL lacuna_mutants_build)
