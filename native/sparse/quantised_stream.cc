// SPDX-License-Identifier: Apache-2.0
#include "sparse/quantised_stream.h"

#include "base/memory_pool.h"
#include "kernels/quantise.h"
#include "sparse/owners.h"

namespace coll {

std::optional<SparseStream> from_quantised(const SparseTerms& terms, const SparseStream& of,
                                           std::span<const std::byte> bytes,
                                           const std::shared_ptr<const void>& owner) {
  const auto n = static_cast<std::size_t>(of.length);
  const std::shared_ptr<std::byte[]> values = pooled_or_throw(n * terms.value_bytes());
  const auto took = dequantise(terms.dtype, bytes, terms.quantise_bits, values.get(), n);
  if (!took) return {};
  return SparseStream{.form = Form::dense,
                      .first = of.first,
                      .length = of.length,
                      .entries = n,
                      .values = values.get(),
                      .owner = both(owner, values),
                      .quantised = bytes.first(*took)};
}

SparseStream quantised(const SparseTerms& terms, const SparseStream& dense) {
  const std::size_t most = most_quantised_bytes(terms.dtype, dense.length, terms.quantise_bits);
  const std::shared_ptr<std::byte[]> code = pooled_or_throw(most);
  const std::size_t bytes = quantise(terms.dtype, dense.values, dense.entries, terms.quantise_bits,
                                     terms.quantise_key, dense.first, code.get());
  // Of what was just written it finds a stream.
  return from_quantised(terms, dense, {code.get(), bytes}, code).value_or(dense);
}

}  // namespace coll
