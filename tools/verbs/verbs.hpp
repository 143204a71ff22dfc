// The verbs: each file adds its subcommand, with a callback that fills the session.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/common/session.hpp"

namespace lacuna::tools {

void add_check(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_emit(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_build(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_calibrate(CLI::App& app, Session& session);
void add_viz(CLI::App& app, Session& session);
void add_cache(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);

}  // namespace lacuna::tools
