// SPDX-License-Identifier: Apache-2.0
// Null pointers: no function of the C interface crashes on one, each says what is missing.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "null_gpu.h"

namespace {

const std::vector<Row> kLife = {
    {"coll_init", [](coll_comm*) -> int { return coll_init(nullptr, nullptr); }, kNone, kNone},
    {"coll_init_from_environment",
     [](coll_comm*) -> int { return coll_init_from_environment(0, nullptr); }, kNone, kNone},
    {"coll_local", [](coll_comm*) -> int { return coll_local(nullptr, nullptr); }, kNone, kNone},
    {"coll_close", [](coll_comm*) -> int { return coll_close(nullptr); }, kGone, kGone},
    {"coll_abort", [](coll_comm* c) -> int { return coll_abort(c, nullptr); }, kGone, COLL_OK},
    {"coll_stop_by", [](coll_comm* c) -> int { return coll_stop_by(c, nullptr, nullptr); }, kGone,
     COLL_OK},
    {"coll_rank", [](coll_comm* c) -> int { return coll_rank(c); }, -1, 0},
    {"coll_ranks", [](coll_comm* c) -> int { return coll_ranks(c); }, 0, 1},
    {"coll_look", [](coll_comm* c) -> int { return coll_look(c, -1); }, COLL_CLOSED, COLL_OK},
    {"coll_sequence", [](coll_comm* c) -> int { return static_cast<int>(coll_sequence(c)); }, 0, 0},
    {"coll_timeout", [](coll_comm* c) -> int { return static_cast<int>(coll_timeout(c)); }, 0, 300},
    {"coll_split", [](coll_comm* c) -> int { return coll_split(c, 0, 0, nullptr); }, kNone, kNone},
    {"coll_subgroup", [](coll_comm* c) -> int { return coll_subgroup(c, nullptr, 1, nullptr); },
     kNone, kNone},
    {"coll_revoke", [](coll_comm* c) -> int { return coll_revoke(c); }, kGone, COLL_OK},
    {"coll_shrink", [](coll_comm* c) -> int { return coll_shrink(c, 0, nullptr); }, kNone, kNone},
    {"coll_dup", [](coll_comm* c) -> int { return coll_dup(c, nullptr); }, kNone, kNone},
    {"coll_axis", [](coll_comm* c) -> int { return coll_axis(c, nullptr, 1, 0, nullptr, nullptr); },
     kNone, kNone},
};

template <auto function>
int folding(coll_comm* c) {
  return function(c, nullptr, nullptr, 1, COLL_INT32, COLL_SUM);
}
template <auto function>
int moving(coll_comm* c) {
  return function(c, nullptr, nullptr, 1, COLL_INT32);
}
template <auto function>
int rooted(coll_comm* c) {
  return function(c, nullptr, nullptr, 1, COLL_INT32, 0);
}

const std::vector<Row> kCollectives = {
    {"coll_validate", [](coll_comm* c) -> int { return coll_validate(c, nullptr); }, kGone, kNone},
    {"coll_run", [](coll_comm* c) -> int { return coll_run(c, nullptr); }, kGone, kNone},
    {"coll_resume", [](coll_comm* c) -> int { return coll_resume(c); }, kGone, kNone},
    {"coll_collective",
     [](coll_comm* c) -> int {
       return coll_collective(c, COLL_ALLREDUCE, nullptr, nullptr, 1, 0, 0, 0, -1, -1, 0);
     },
     kGone, kNone},
    {"coll_allreduce", folding<coll_allreduce>, kGone, kNone},
    {"coll_reduce_scatter", folding<coll_reduce_scatter>, kGone, kNone},
    {"coll_reduce_scatterv",
     [](coll_comm* c) -> int {
       return coll_reduce_scatterv(c, nullptr, nullptr, nullptr, COLL_INT32, COLL_SUM);
     },
     kNone, kNone},
    {"coll_allgather", moving<coll_allgather>, kGone, kNone},
    {"coll_allgatherv",
     [](coll_comm* c) -> int { return coll_allgatherv(c, nullptr, nullptr, nullptr, COLL_INT32); },
     kNone, kNone},
    {"coll_broadcast", rooted<coll_broadcast>, kGone, kNone},
    {"coll_reduce",
     [](coll_comm* c) -> int {
       return coll_reduce(c, nullptr, nullptr, 1, COLL_INT32, COLL_SUM, 0);
     },
     kGone, kNone},
    {"coll_gather", rooted<coll_gather>, kGone, kNone},
    {"coll_gatherv",
     [](coll_comm* c) -> int { return coll_gatherv(c, nullptr, nullptr, nullptr, COLL_INT32, 0); },
     kNone, kNone},
    {"coll_scatter", rooted<coll_scatter>, kGone, kNone},
    {"coll_scatterv",
     [](coll_comm* c) -> int { return coll_scatterv(c, nullptr, nullptr, nullptr, COLL_INT32, 0); },
     kNone, kNone},
    {"coll_alltoall", moving<coll_alltoall>, kGone, kNone},
    {"coll_alltoallv",
     [](coll_comm* c) -> int { return coll_alltoallv(c, nullptr, nullptr, nullptr, COLL_INT32); },
     kNone, kNone},
    {"coll_scan", folding<coll_scan>, kGone, kNone},
    {"coll_exscan", folding<coll_exscan>, kGone, kNone},
    {"coll_barrier", [](coll_comm* c) -> int { return coll_barrier(c); }, kGone, COLL_OK},
};

const std::vector<Row> kBeside = {
    {"coll_send", [](coll_comm* c) -> int { return coll_send(c, nullptr, 1, 0, 0, 0, 1); }, kGone,
     kNone},
    {"coll_recv", [](coll_comm* c) -> int { return coll_recv(c, nullptr, 1, 0, 0, 0, nullptr, 1); },
     kGone, kNone},
    {"coll_sendrecv",
     [](coll_comm* c) -> int {
       return coll_sendrecv(c, nullptr, 1, 0, 0, 0, nullptr, 1, 0, 0, 0, nullptr, 1);
     },
     kGone, kNone},
    {"coll_probe", [](coll_comm* c) -> int { return coll_probe(c, 0, 0, nullptr, 0.01); }, kGone,
     COLL_TIMEOUT},
    {"coll_iprobe", [](coll_comm* c) -> int { return coll_iprobe(c, 0, 0, nullptr, nullptr); },
     kNone, kNone},
    {"coll_isend", [](coll_comm* c) -> int { return coll_isend(c, nullptr, 1, 0, 0, 0, nullptr); },
     kNone, kNone},
    {"coll_irecv", [](coll_comm* c) -> int { return coll_irecv(c, nullptr, 1, 0, 0, 0, nullptr); },
     kNone, kNone},
    {"coll_test", [](coll_comm* c) -> int { return coll_test(c, 0, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_wait", [](coll_comm* c) -> int { return coll_wait(c, 0, nullptr, 1); }, kGone, kNone},
    {"coll_persistent_new",
     [](coll_comm* c) -> int { return coll_persistent_new(c, nullptr, nullptr); }, kNone, kNone},
    {"coll_start", [](coll_comm*) -> int { return coll_start(nullptr); }, kNone, kNone},
    {"coll_finish", [](coll_comm*) -> int { return coll_finish(nullptr); }, kNone, kNone},
    {"coll_run_persistent", [](coll_comm*) -> int { return coll_run_persistent(nullptr); }, kNone,
     kNone},
    {"coll_persistent_free", [](coll_comm*) -> int { return coll_persistent_free(nullptr); },
     COLL_OK, COLL_OK},
    {"coll_memory_new", [](coll_comm* c) -> int { return coll_memory_new(c, 1, nullptr, nullptr); },
     kNone, kNone},
    {"coll_memory_free", [](coll_comm*) -> int { return coll_memory_free(nullptr), 0; }, 0, 0},
    {"coll_is_symmetric", [](coll_comm* c) -> int { return coll_is_symmetric(c, nullptr, 0); }, 0,
     1},
    {"coll_listener_open", [](coll_comm*) -> int { return coll_listener_open(nullptr, nullptr); },
     kNone, kNone},
    {"coll_listener_text",
     [](coll_comm*) -> int { return static_cast<int>(coll_listener_text(nullptr, nullptr, 0)); }, 0,
     0},
    {"coll_listener_close", [](coll_comm*) -> int { return coll_listener_close(nullptr), 0; }, 0,
     0},
    {"coll_own_address",
     [](coll_comm*) -> int { return coll_own_address(nullptr, nullptr, nullptr, 0); }, kNone,
     kNone},
    {"coll_init_wire", [](coll_comm*) -> int { return coll_init_wire(nullptr, nullptr, nullptr); },
     kNone, kNone},
    {"coll_transport", [](coll_comm* c) -> int { return coll_transport(c) != nullptr; }, 0, 1},
    {"coll_ucx_version",
     [](coll_comm*) -> int { return coll_ucx_version(nullptr, nullptr, nullptr, 0); }, kNone,
     kNone},
    {"coll_make_secret", [](coll_comm*) -> int { return coll_make_secret(nullptr); }, kNone, kNone},
    {"coll_read_secret", [](coll_comm*) -> int { return coll_read_secret(nullptr, nullptr); },
     kNone, kNone},
    {"coll_directory_open", [](coll_comm*) -> int { return coll_directory_open(nullptr, nullptr); },
     kNone, kNone},
    {"coll_directory_rank", [](coll_comm*) -> int { return coll_directory_rank(nullptr); }, -1, -1},
    {"coll_directory_ranks", [](coll_comm*) -> int { return coll_directory_ranks(nullptr); }, 0, 0},
    {"coll_directory_put",
     [](coll_comm*) -> int { return coll_directory_put(nullptr, nullptr, nullptr, 1, 1); },
     COLL_CLOSED, COLL_CLOSED},
    {"coll_directory_get",
     [](coll_comm*) -> int { return coll_directory_get(nullptr, nullptr, nullptr, 1, nullptr, 1); },
     COLL_CLOSED, COLL_CLOSED},
    {"coll_directory_fence", [](coll_comm*) -> int { return coll_directory_fence(nullptr, 1); },
     COLL_CLOSED, COLL_CLOSED},
    {"coll_directory_close", [](coll_comm*) -> int { return coll_directory_close(nullptr), 0; }, 0,
     0},
    {"coll_exact_limbs",
     [](coll_comm*) -> int { return coll_exact_limbs(COLL_FLOAT32, 2, nullptr); }, kNone, kNone},
    {"coll_exact_add",
     [](coll_comm*) -> int { return coll_exact_add(COLL_FLOAT32, 2, nullptr, nullptr, 1); }, kNone,
     kNone},
    {"coll_exact_round",
     [](coll_comm*) -> int { return coll_exact_round(COLL_FLOAT32, 2, nullptr, nullptr, 1, 1); },
     kNone, kNone},
    {"coll_op_create",
     [](coll_comm*) -> int { return coll_op_create(nullptr, nullptr, 1, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_op_free", [](coll_comm*) -> int { return coll_op_free(-2); }, kNone, kNone},
};

const std::vector<Row> kData = {
    {"coll_last_error", [](coll_comm*) -> int { return coll_last_error() == nullptr; }, 0, 0},
    {"coll_last_error_rank", [](coll_comm*) -> int { return coll_last_error_rank(); }, -1, -1},
    {"coll_status_name", [](coll_comm*) -> int { return coll_status_name(-1) == nullptr; }, 0, 0},
    {"coll_kind_name", [](coll_comm*) -> int { return coll_kind_name(-1) == nullptr; }, 0, 0},
    {"coll_version", [](coll_comm*) -> int { return coll_version() == nullptr; }, 0, 0},
    {"coll_variable_count", [](coll_comm*) -> int { return coll_variable_count() <= 0; }, 0, 0},
    {"coll_variable_get", [](coll_comm*) -> int { return coll_variable_get(0, nullptr); }, kNone,
     kNone},
    {"coll_algorithm_count", [](coll_comm*) -> int { return coll_algorithm_count() <= 0; }, 0, 0},
    {"coll_algorithm_get", [](coll_comm*) -> int { return coll_algorithm_get(0, nullptr); }, kNone,
     kNone},
    {"coll_algorithm_find", [](coll_comm*) -> int { return coll_algorithm_find(0, nullptr); }, -1,
     -1},
    {"coll_algorithm_fits", [](coll_comm*) -> int { return coll_algorithm_fits(-1, 1); }, 0, 0},
    {"coll_formula", [](coll_comm*) -> int { return coll_formula(nullptr, 3, nullptr); }, kNone,
     kNone},
    {"coll_choose", [](coll_comm*) -> int { return coll_choose(0, 2, 8, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_prove", [](coll_comm*) -> int { return coll_prove(0, 2, 0, 0, nullptr); }, kNone, kNone},
    {"coll_prove_plan",
     [](coll_comm*) -> int { return coll_prove_plan(0, 2, 0, 0, nullptr, nullptr); }, kNone, kNone},
    {"coll_schedule", [](coll_comm*) -> int { return coll_schedule(0, 2, 0, nullptr, nullptr); },
     kNone, kNone},
    {"coll_plan", [](coll_comm*) -> int { return coll_plan(0, 2, 0, nullptr, nullptr, nullptr); },
     kNone, kNone},
    {"coll_prove_encoded",
     [](coll_comm*) -> int {
       return coll_prove_encoded(nullptr, 8, 0, -1, COLL_CHECK_ALL, nullptr);
     },
     kNone, kNone},
    {"coll_product_schedule",
     [](coll_comm*) -> int { return coll_product_schedule(nullptr, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_product_prove",
     [](coll_comm*) -> int { return coll_product_prove(nullptr, 0, nullptr); }, kNone, kNone},
    {"coll_product_between",
     [](coll_comm*) -> int { return coll_product_between(nullptr, 0, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_builder_new", [](coll_comm*) -> int { return coll_builder_new(0, 2, 0, 2, nullptr); },
     kNone, kNone},
    {"coll_builder_rank", [](coll_comm*) -> int { return coll_builder_rank(nullptr, 0); }, kNone,
     kNone},
    {"coll_builder_send",
     [](coll_comm*) -> int { return coll_builder_send(nullptr, 0, nullptr, 1, nullptr, 1); }, kNone,
     kNone},
    {"coll_builder_recv",
     [](coll_comm*) -> int { return coll_builder_recv(nullptr, 0, 1, nullptr, 1); }, kNone, kNone},
    {"coll_builder_recv_reduce",
     [](coll_comm*) -> int {
       return coll_builder_recv_reduce(nullptr, 0, nullptr, 1, 0, nullptr, 1);
     },
     kNone, kNone},
    {"coll_builder_copy",
     [](coll_comm*) -> int { return coll_builder_copy(nullptr, 0, 0, 1, nullptr, 1); }, kNone,
     kNone},
    {"coll_builder_finish",
     [](coll_comm*) -> int { return coll_builder_finish(nullptr, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_builder_free", [](coll_comm*) -> int { return coll_builder_free(nullptr), 0; }, 0, 0},
    {"coll_add_schedule",
     [](coll_comm* c) -> int { return coll_add_schedule(c, nullptr, 8, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_adasum",
     [](coll_comm* c) -> int { return coll_adasum(c, nullptr, nullptr, 8, COLL_FLOAT32, 0); },
     kGone, kNone},
    {"coll_tune", [](coll_comm* c) -> int { return coll_tune(c, nullptr, 0); }, kGone, COLL_OK},
    {"coll_announce", [](coll_comm* c) -> int { return coll_announce(c, nullptr, 0, 0); }, kGone,
     COLL_OK},
    {"coll_shared_cores", [](coll_comm* c) -> int { return coll_shared_cores(c, nullptr); }, kGone,
     kNone},
    {"coll_refine", [](coll_comm* c) -> int { return coll_refine(c, 1, nullptr); }, kGone, COLL_OK},
    {"coll_check_wishes", [](coll_comm*) -> int { return coll_check_wishes(nullptr, 2); }, kNone,
     kNone},
    {"coll_chosen", [](coll_comm* c) -> int { return coll_chosen(c, 0, 8, 0, nullptr, nullptr); },
     kNone, kNone},
    {"coll_tell_times", [](coll_comm* c) -> int { return coll_tell_times(c, 1); }, kGone, COLL_OK},
    {"coll_last", [](coll_comm* c) -> int { return coll_last(c, nullptr); }, kNone, kNone},
    {"coll_trace_begin", [](coll_comm* c) -> int { return coll_trace_begin(c, 0); }, kNone, kNone},
    {"coll_trace_end", [](coll_comm* c) -> int { return coll_trace_end(c); }, kGone, COLL_OK},
    {"coll_trace_read",
     [](coll_comm* c) -> int { return coll_trace_read(c, nullptr, 1, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_network_of_words",
     [](coll_comm*) -> int { return coll_network_of_words("node:2", nullptr); }, kNone, kNone},
    {"coll_network_of_rooms",
     [](coll_comm*) -> int { return coll_network_of_rooms(nullptr, nullptr); }, kNone, kNone},
    {"coll_network_free", [](coll_comm*) -> int { return coll_network_free(nullptr), 0; }, 0, 0},
    {"coll_network_ranks", [](coll_comm*) -> int { return coll_network_ranks(nullptr); }, 0, 0},
    {"coll_network_classes", [](coll_comm*) -> int { return coll_network_classes(nullptr); }, 0, 0},
    {"coll_network_class",
     [](coll_comm*) -> int { return coll_network_class(nullptr, 0) == nullptr ? 0 : 1; }, 0, 0},
    {"coll_simulate",
     [](coll_comm*) -> int {
       return coll_simulate(nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr);
     },
     kNone, kNone},
    {"coll_usual_machine", [](coll_comm*) -> int { return coll_usual_machine(nullptr); }, kNone,
     kNone},
    {"coll_measure_machine",
     [](coll_comm* c) -> int { return coll_measure_machine(c, 0.01, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_predict", [](coll_comm*) -> int { return coll_predict(nullptr, nullptr, nullptr); },
     kNone, kNone},
    {"coll_predict_wire",
     [](coll_comm*) -> int { return coll_predict_wire(nullptr, nullptr, nullptr); }, kNone, kNone},
    {"coll_free", [](coll_comm*) -> int { return coll_free(nullptr), 0; }, 0, 0},
    {"coll_work_stop_by", [](coll_comm*) -> int { return coll_work_stop_by(nullptr, nullptr), 0; },
     0, 0},
};

const std::vector<std::vector<Row>> kTables = {kLife, kCollectives, kBeside, kData, kSparse, kGpu};

coll_comm* alone() {
  coll_options options{};
  options.size = sizeof options;
  options.ranks = 1;
  coll_comm* comm = nullptr;
  CHECK(coll_local(&options, &comm) == COLL_OK);
  return comm;
}

// Adds every coll_...( ... );
void add_functions(std::set<std::string>& names, const std::string& text) {
  constexpr std::string_view kWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  for (std::size_t at = text.find("coll_"); at != std::string::npos;) {
    const std::size_t end = text.find_first_not_of(kWord, at);
    if (end == std::string::npos) return;
    const bool begins = at == 0 || kWord.find(text[at - 1]) == std::string_view::npos;
    if (begins && text[end] == '(') {
      const std::size_t stop = text.find_first_of(";{", end);
      if (stop == std::string::npos) return;
      if (text[stop] == ';' && text[stop - 1] == ')') names.insert(text.substr(at, end - at));
    }
    at = text.find("coll_", end);
  }
}

// The names that the headers declare as functions.
std::set<std::string> declared() {
  namespace fs = std::filesystem;
  const fs::path headers = fs::path(__FILE__).parent_path() / "../../native/include";
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(headers)) {
    std::ifstream file(entry.path());
    std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t at; (at = text.find("/*")) != std::string::npos;) {
      text.erase(at, text.find("*/", at) + 2 - at);
    }
    add_functions(names, text);
  }
  return names;
}

void check_row(const Row& row, coll_comm* comm, int wanted) {
  const int got = row.call(comm);
  if (got == wanted) return;
  check::fail(std::string(row.name) + (comm != nullptr ? " with" : " without") +
              " a communicator returns " + std::to_string(got) + ", not " + std::to_string(wanted));
}

}  // namespace

TEST(null_pointers_are_refused) {
  for (const auto& table : kTables) {
    for (const Row& row : table) {
      check_row(row, nullptr, row.without);
      coll_comm* comm = alone();
      check_row(row, comm, row.with);
      coll_close(comm);
    }
  }
}

TEST(each_that_is_refused_says_what_is_missing) {
  for (const auto& table : kTables) {
    for (const Row& row : table) {
      if (row.without != kNone && row.without != kGone) continue;
      coll_op_free(-1);  // another sentence stands there
      const std::string before = coll_last_error();
      row.call(nullptr);
      if (coll_last_error() == before) check::fail(std::string(row.name) + " says nothing");
    }
  }
}

TEST(every_function_of_the_headers_is_called) {
  std::set<std::string> called;
  for (const auto& table : kTables) {
    for (const Row& row : table) called.insert(row.name);
  }
  const std::set<std::string> names = declared();
  CHECK(names.size() > 60);
  for (const std::string& name : names) {
    if (!called.contains(name)) check::fail(name + " is in no table of this file: add it");
  }
  CHECK(called.size() == names.size());
}
