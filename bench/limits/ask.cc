// SPDX-License-Identifier: Apache-2.0
// Answers questions about the machine, one per line of standard input, while something else is
// measured: used by `python -m bench.peers`.
//
//   line              one-way latency of a cache line, ns
//   yield             sched_yield, ns
//   copy BYTES        plain copy on both cores at once, GB/s each
//   streaming BYTES   the same with stores that bypass the caches
//   peer BYTES        each reads what the other has just written
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "probe.h"
#include "streams.h"

namespace limits {
namespace {

double answer(const std::string& question, int a, int b) {
  std::istringstream words(question);
  std::string what;
  std::size_t bytes = 0;
  words >> what;
  if (what == "line") return line_latency_ns(a, b);
  if (what == "yield") return yield_ns(a);
  if (!(words >> bytes)) throw std::runtime_error("cannot answer \"" + question + "\"");
  if (what == "copy") return stream_rate(Stream::copy, a, b, bytes);
  if (what == "streaming") return stream_rate(Stream::streaming, a, b, bytes);
  if (what == "peer") return stream_rate(Stream::read_the_other, a, b, bytes);
  throw std::runtime_error("cannot answer \"" + question + "\"");
}

void run() {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) throw std::runtime_error("the limits need two usable cores, found one");
  for (std::string question; std::getline(std::cin, question);) {
    std::cout << answer(question, cores[0], cores[1]) << std::endl;
  }
}

}  // namespace
}  // namespace limits

int main() {
  try {
    limits::run();
  } catch (const std::exception& error) {
    std::cerr << "coll_ask: " << error.what() << '\n';
    return 1;
  }
}
