// SPDX-License-Identifier: Apache-2.0
// Random pairs of indices and values of any dtype, and what their sums are by definition.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "check.h"
#include "fold_check.h"
#include "kernels/kernels.h"
#include "kernels/pairs.h"
#include "kernels/widening.h"

namespace check {

using Bytes = std::vector<unsigned char>;

inline constexpr coll::Dtype kSummed[] = {
    coll::Dtype::float32,       coll::Dtype::float64,     coll::Dtype::int32,
    coll::Dtype::uint64,        coll::Dtype::uint8,       coll::Dtype::int16,
    coll::Dtype::bfloat16,      coll::Dtype::float16,     coll::Dtype::boolean,
    coll::Dtype::float8_e4m3fn, coll::Dtype::float8_e5m2, coll::Dtype::complex64,
    coll::Dtype::complex128};

inline std::mt19937_64& generator() {
  static std::mt19937_64 engine(20'26);
  return engine;
}
inline std::uint64_t random_below(std::uint64_t n) { return generator()() % n; }

// n values, zeros of both signs among them, and none that is no number.
inline Bytes random_values(coll::Dtype dtype, std::size_t n) {
  Bytes values(n * coll::size_of(dtype));
  if (n == 0) return values;
  const coll::Family family = coll::family_of(dtype);
  if (family == coll::Family::integer || family == coll::Family::boolean) {
    for (unsigned char& byte : values) byte = static_cast<unsigned char>(random_below(256));
    return values;
  }
  const std::size_t parts = family == coll::Family::complex ? 2 : 1;
  std::vector<float> floats(n * parts);
  for (float& x : floats) {
    x = (static_cast<float>(random_below(2001)) - 1000.0F) /
        static_cast<float>(7 + random_below(90));
    if (random_below(20) == 0) x = random_below(2) == 0 ? 0.0F : -0.0F;
  }
  if (coll::size_of(dtype) == 4 * parts) {
    std::memcpy(values.data(), floats.data(), values.size());
  } else if (coll::size_of(dtype) == 8 * parts) {
    const std::vector<double> wide(floats.begin(), floats.end());
    std::memcpy(values.data(), wide.data(), values.size());
  } else {
    coll::round_array(dtype, values.data(), coll::Dtype::float32, floats.data(), n);
  }
  return values;
}

// Pairs in memory, at any distance from a cache line.
struct PlacedPairs {
  std::size_t n;
  Placed<unsigned char> indices, values;

  PlacedPairs(std::size_t pairs, std::size_t index_bytes, std::size_t value_bytes,
              std::size_t skew = 0)
      : n(pairs), indices(pairs * index_bytes, skew), values(pairs * value_bytes, 3 * skew) {}
  coll::PairsView view() { return {indices.data(), values.data(), n}; }
  coll::PairsRoom room() { return {indices.data(), values.data()}; }
};

// A run as the test knows it.
struct Run {
  std::vector<std::uint64_t> indices;
  Bytes values;

  PlacedPairs placed(std::size_t index_bytes, std::size_t skew) const {
    const std::size_t n = indices.size();
    PlacedPairs pairs(n, index_bytes, n == 0 ? 1 : values.size() / n, skew);
    Bytes narrow(n * index_bytes);
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(narrow.data() + i * index_bytes, &indices[i], index_bytes);  // little-endian
    }
    pairs.indices.set(narrow);
    pairs.values.set(values);
    return pairs;
  }
};

// n different indices, ascending, of [first, first + span).
inline Run random_run(coll::Dtype dtype, std::size_t n, std::uint64_t first, std::uint64_t span) {
  std::map<std::uint64_t, int> places;
  while (places.size() < n) places[first + random_below(span)] = 0;
  Run run;
  for (const auto& [index, unused] : places) run.indices.push_back(index);
  run.values = random_values(dtype, n);
  return run;
}

// One after the other by the folds, which have tests of their own, rounded once; in the order of
// the runs.
inline Run sum_of(coll::Dtype dtype, const std::vector<Run>& runs) {
  const std::size_t size = coll::size_of(dtype);
  std::map<std::uint64_t, std::vector<const void*>> found;
  for (const Run& run : runs) {
    for (std::size_t i = 0; i < run.indices.size(); ++i) {
      found[run.indices[i]].push_back(run.values.data() + i * size);
    }
  }
  Run sum;
  sum.values.resize(found.size() * size);
  const coll::FoldKernel fold = coll::fold_kernel_for(
      coll::InstructionSet::baseline, dtype,
      dtype == coll::Dtype::boolean ? coll::Reduction::lor : coll::Reduction::sum);
  for (const auto& [index, sources] : found) {
    void* to[] = {sum.values.data() + sum.indices.size() * size};
    sum.indices.push_back(index);
    if (sources.size() == 1) {
      std::memcpy(to[0], sources[0], size);
    } else {
      fold({sources.data(), to, 1, static_cast<std::uint32_t>(sources.size()), 1, false, 0, 1});
    }
  }
  return sum;
}

// What was written, at most `n` pairs of the room, is this.
inline void check_run(PlacedPairs& found, std::size_t n, std::size_t index_bytes,
                      const Run& wanted) {
  CHECK(n == wanted.indices.size());
  CHECK(found.indices.margins_intact() && found.values.margins_intact());
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t index = 0;
    std::memcpy(&index, found.indices.data() + i * index_bytes, index_bytes);
    CHECK(index == wanted.indices[i]);
  }
  if (n > 0)
    CHECK(std::memcmp(found.values.data(), wanted.values.data(), wanted.values.size()) == 0);
}

}  // namespace check
