# lacuna_packages(): installs what building needs, a compiler and the headers of Python included, so that what is missing is said
# before anything is built. Comes before enable_language.
#
# lacuna_native(TARGET...): builds targets of the C++ project and sets lacuna_root and lacuna_bin.
#
# They are built where `tools/start` builds everything, so that checkout, wheel and tests share one
# build. LACUNA_BUILD names another build folder, whose targets are then there already.
set(LACUNA_BUILD "" CACHE PATH "Folder of a finished C++ build to take the libraries from")
get_filename_component(lacuna_root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)

macro(lacuna_packages)
  if(NOT LACUNA_BUILD)
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
    execute_process(COMMAND ${lacuna_root}/tools/start packages ${Python_EXECUTABLE} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endmacro()

macro(lacuna_native)
  if(LACUNA_BUILD)
    set(lacuna_build ${LACUNA_BUILD})
  else()
    set(lacuna_build ${lacuna_root}/build/release)
    execute_process(COMMAND ${lacuna_root}/tools/start make ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(lacuna_bin ${lacuna_build}/bin)
endmacro()
