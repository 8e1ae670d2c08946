// SPDX-License-Identifier: Apache-2.0
// Folds against their definition, bit for bit, as compiled for every instruction set of this CPU:
// every dtype and operation, and shapes, numbers of sources and copies in general.
#include "kernels/kernels.h"

#include <algorithm>
#include <array>

#include "check.h"
#include "fold_check.h"
#include "instrumented.h"
#include "kernels/copy.h"
#include "kernels/few.h"
#include "kernels/instruction_set.h"
#include "random_element.h"

namespace {

using check::Case;
using check::check_fold;
using check::check_shapes;
using check::kernels_of;
using check::Placed;
using coll::Dtype;
using coll::Fold;
using coll::FoldKernel;
using coll::Reduction;
using definition::Bool;
using definition::Pair;
using operands::random_sources;

// ---- every dtype and operation ------------------------------------------------------------------

using Ops = std::vector<Reduction>;

const Ops kLogical = {Reduction::land, Reduction::lor, Reduction::lxor};
const Ops kBitwise = {Reduction::band, Reduction::bor, Reduction::bxor};
const Ops kArithmetic = {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max};

Ops operator+(Ops a, const Ops& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Ops kOfFloats = kArithmetic + Ops{Reduction::avg} + kLogical;
const Ops kOfIntegers = kArithmetic + kLogical + kBitwise;
const Ops kOfComplex = {Reduction::sum, Reduction::prod, Reduction::avg};
const Ops kOfPairs = {Reduction::minloc, Reduction::maxloc};

// These are defined, and no other ones.
void check_defined(Dtype dtype, const Ops& ops) {
  for (int i = -1; i <= coll::kReductions; ++i) {
    const auto op = static_cast<Reduction>(i);
    const bool defined = std::ranges::find(ops, op) != ops.end();
    CHECK((coll::fold_kernel(dtype, op) != nullptr) == defined);
  }
}

// Of a line no kernel is called, where there is what has its bits.
template <class T>
void check_few(Dtype dtype, Reduction op, const std::vector<std::vector<T>>& inputs) {
  const coll::FewKernel few = coll::few_kernel(dtype, op);
  if (few == nullptr) return;
  for (std::size_t n = 0; n <= coll::kFewBytes / sizeof(T); ++n) {
    for (std::size_t at = 0; at + n <= inputs[0].size(); at += 37) {
      std::vector<T> wanted(n + 1, inputs[0][0]), found = wanted;
      const void* sources[] = {&inputs[0][at], &inputs[1][at]};
      void* destination = wanted.data();
      const Fold fold{.sources = sources,
                      .destinations = &destination,
                      .n = n,
                      .k = 2,
                      .m = 1,
                      .balanced = false,
                      .streaming = 0,
                      .divisor = 1};
      coll::fold_kernel_for(coll::InstructionSet::baseline, dtype, op)(fold);
      few(found.data(), sources[0], sources[1], n);
      CHECK(check::all_same(found, wanted, n + 1));
    }
  }
}

template <class T>
void check_dtype(Dtype dtype, const Ops& ops) {
  static_assert(sizeof(T) <= 16);
  CHECK(coll::size_of(dtype) == sizeof(T));
  check_defined(dtype, ops);
  const std::size_t n = 5096 / sizeof(T) + 5;  // streamed, two blocks at least, an odd rest
  for (const Reduction op : ops) {
    check_few(dtype, op, random_sources<T>(2, n));
    for (const std::size_t k : {1, 2, 3, 4, 5, 7, 8, 9, 17}) {
      if (check::kInstrumented && k != 2 && k != 9) continue;
      const auto inputs = random_sources<T>(k, n);
      const double divisor = op == Reduction::avg ? static_cast<double>(k) : 1.0;
      for (const bool balanced : {false, true}) {
        check_shapes(dtype, Case{op, 1, balanced, 0, divisor, false, false}, inputs);
      }
    }
  }
}

TEST(float32_folds) { check_dtype<float>(Dtype::float32, kOfFloats); }
TEST(float64_folds) { check_dtype<double>(Dtype::float64, kOfFloats); }
TEST(bfloat16_folds) { check_dtype<definition::Bfloat16>(Dtype::bfloat16, kOfFloats); }
TEST(float16_folds) { check_dtype<definition::Float16>(Dtype::float16, kOfFloats); }
TEST(e4m3fn_folds) { check_dtype<definition::Float8E4m3fn>(Dtype::float8_e4m3fn, kOfFloats); }
TEST(e5m2_folds) { check_dtype<definition::Float8E5m2>(Dtype::float8_e5m2, kOfFloats); }

TEST(int8_folds) { check_dtype<std::int8_t>(Dtype::int8, kOfIntegers); }
TEST(int16_folds) { check_dtype<std::int16_t>(Dtype::int16, kOfIntegers); }
TEST(int32_folds) { check_dtype<std::int32_t>(Dtype::int32, kOfIntegers); }
TEST(int64_folds) { check_dtype<std::int64_t>(Dtype::int64, kOfIntegers); }
TEST(uint8_folds) { check_dtype<std::uint8_t>(Dtype::uint8, kOfIntegers); }
TEST(uint16_folds) { check_dtype<std::uint16_t>(Dtype::uint16, kOfIntegers); }
TEST(uint32_folds) { check_dtype<std::uint32_t>(Dtype::uint32, kOfIntegers); }
TEST(uint64_folds) { check_dtype<std::uint64_t>(Dtype::uint64, kOfIntegers); }
TEST(bool_folds) { check_dtype<Bool>(Dtype::boolean, kOfIntegers); }

TEST(complex64_folds) { check_dtype<std::complex<float>>(Dtype::complex64, kOfComplex); }
TEST(complex128_folds) { check_dtype<std::complex<double>>(Dtype::complex128, kOfComplex); }

TEST(float32_int32_folds) {
  check_dtype<Pair<float, std::int32_t>>(Dtype::float32_int32, kOfPairs);
}
TEST(float64_int64_folds) {
  check_dtype<Pair<double, std::int64_t>>(Dtype::float64_int64, kOfPairs);
}
TEST(int32_int32_folds) {
  check_dtype<Pair<std::int32_t, std::int32_t>>(Dtype::int32_int32, kOfPairs);
}
TEST(int64_int64_folds) {
  check_dtype<Pair<std::int64_t, std::int64_t>>(Dtype::int64_int64, kOfPairs);
}

TEST(what_does_not_exist_has_no_kernel) {
  for (const int i : {-1, coll::kDtypes, 99}) {
    const auto dtype = static_cast<Dtype>(i);
    CHECK(!coll::exists(dtype));
    CHECK(coll::fold_kernel(dtype, Reduction::sum) == nullptr);
    CHECK(coll::copy_kernel(dtype) == nullptr);
  }
  CHECK(coll::fold_kernel(Dtype::float32, static_cast<Reduction>(99)) == nullptr);
}

// ---- in general ---------------------------------------------------------------------------------

TEST(up_to_the_most_sources) {
  for (const std::size_t k : {31, 100, 1000, 1023, 1024}) {
    if (check::kInstrumented && k != 31 && k != 1024) continue;
    const auto floats = random_sources<float>(k, 61);
    const auto halves = random_sources<definition::Float16>(k, 61);
    for (const bool balanced : {false, true}) {
      check_shapes(Dtype::float32, Case{Reduction::sum, 1, balanced, 0, 1, false, false}, floats);
      check_shapes(Dtype::float16, Case{Reduction::sum, 1, balanced, 0, 1, false, false}, halves);
    }
  }
}

TEST(nothing_to_do) {
  std::array<const void*, 3> from{};
  std::array<void*, 2> to{};
  for (int dtype = 0; dtype < coll::kDtypes; ++dtype) {
    for (int op = 0; op < coll::kReductions; ++op) {
      const FoldKernel kernel =
          coll::fold_kernel(static_cast<Dtype>(dtype), static_cast<Reduction>(op));
      if (kernel == nullptr) continue;
      for (const std::uint32_t k : {1, 2, 3}) {
        kernel({from.data(), to.data(), 0, k, 2, true, 3, 1});
        kernel({from.data(), to.data(), 0, k, 2, false, 0, 0.5});
      }
    }
  }
  coll::copy_bytes(nullptr, nullptr, 0, true);
}

TEST(copies) {
  for (const std::size_t bytes : {1, 63, 64, 4095, 4096, 4097, 4160, 100'003}) {
    const auto input = random_sources<std::uint8_t>(1, bytes)[0];
    for (const std::size_t skew : {0, 1, 16, 63}) {
      Placed<std::uint8_t> from(bytes, 64 - skew), plain(bytes, skew), streamed(bytes, skew);
      from.set(input);
      coll::copy_bytes(plain.data(), from.data(), bytes, false);
      coll::copy_bytes(streamed.data(), from.data(), bytes, true);
      coll::copy_bytes(from.data(), from.data(), bytes, true);
      for (Placed<std::uint8_t>* copy : {&from, &plain, &streamed}) {
        CHECK(copy->values() == input);
        CHECK(copy->margins_intact());
      }
    }
  }
}

// What moves an element must not care what it is.
TEST(every_dtype_is_copied) {
  for (int i = 0; i < coll::kDtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    for (const std::size_t n : {0, 1, 7, 1000}) {
      const auto bytes = random_sources<std::uint8_t>(1, n * coll::size_of(dtype))[0];
      Placed<std::uint8_t> first(bytes.size(), 5), second(bytes.size(), 64 - 5);
      std::array<void*, 2> to = {first.data(), second.data()};
      const void* from = bytes.data();
      coll::copy_kernel(dtype)({&from, to.data(), n, 1, 2, false, 1, 1});
      for (Placed<std::uint8_t>* copy : {&first, &second}) {
        CHECK(copy->values() == bytes);
        CHECK(copy->margins_intact());
      }
    }
  }
}

TEST(copies_line_by_line_with_every_instruction_set) {
  for (const coll::InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    for (const std::size_t bytes : {1, 64, 127, 1023, 1024, 5000}) {
      const auto input = random_sources<std::uint8_t>(1, bytes)[0];
      for (std::size_t skew = 0; skew < 64; ++skew) {
        Placed<std::uint8_t> to(bytes, skew);
        coll::kernels::copy_aligned(to.data(), input.data(), bytes, set);
        CHECK(to.values() == input);
        CHECK(to.margins_intact());
      }
    }
  }
}

TEST(what_is_asked_for_behind_some_bytes) {
  const std::byte* const place = nullptr;
  const coll::Soon soon{.places = &place, .count = 1, .first = 64, .end = 256};
  CHECK(soon.behind(0).first == 64 && soon.behind(0).end == 256);
  CHECK(soon.behind(128).first == 192 && soon.behind(128).count == 1);
  CHECK(soon.behind(192).count == 0);
}

TEST(streams_with_every_instruction_set) {
  for (const coll::InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    for (const std::size_t bytes : {1, 64, 127, 128, 1000}) {
      const auto input = random_sources<std::uint8_t>(1, bytes)[0];
      for (std::size_t skew = 0; skew < 64; ++skew) {
        Placed<std::uint8_t> to(bytes, skew);
        const auto* whole = reinterpret_cast<const std::byte*>(input.data());
        const std::array soon = {whole, whole + bytes / 2};
        const auto asked = static_cast<std::uint32_t>(skew % 3);
        coll::kernels::stream_bytes(
            to.data(), input.data(), bytes,
            {.places = soon.data(), .count = asked, .first = 0, .end = bytes / 2}, set);
        coll::kernels::end_streaming();
        CHECK(to.values() == input);
        CHECK(to.margins_intact());
      }
    }
  }
}

}  // namespace
