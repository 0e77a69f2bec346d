// The unique family, made of sort, comparison with the neighbour, cumsum and nonzero.
//
// "First of its group" flags over a sequence in which equal elements are neighbours give everything: the elements at
// the flags are the result, the running count of flags is the inverse, distances between flags are the counts.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sub.h>
#include <c10/core/WrapDimMinimal.h>

#include "generated/sort.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

struct Groups {
  Tensor starts;  // positions of the flags
  Tensor number;  // which group each position belongs to; if asked for
};

// `differs[i]`: element i + 1 is unlike element i. There is at least one element.
Groups groups_of(const Tensor& differs, int64_t length, bool number) {
  Tensor first = at::ones({length}, differs.options().dtype(at::kBool));
  first.narrow(0, 1, length - 1).copy_(differs);
  Groups groups;
  groups.starts = at::nonzero(first).squeeze(1);
  if (number) groups.number = at::sub(at::cumsum(first, 0), at::ones({}, first.options().dtype(at::kLong)));
  return groups;
}

Tensor lengths_of(const Tensor& starts, int64_t length) {
  return at::diff(at::cat({starts, at::full({1}, length, starts.options())}));
}

Tensor no_longs(const Tensor& like, at::IntArrayRef sizes = {0}) {
  return at::empty(sizes, like.options().dtype(at::kLong));
}

std::tuple<Tensor, Tensor, Tensor> unique_flat(const Tensor& self, bool presorted, bool inverse, bool counts) {
  const Tensor flat = self.reshape({-1});
  const int64_t length = flat.numel();
  if (length == 0)
    return {at::empty({0}, self.options()), inverse ? no_longs(self, self.sizes()) : no_longs(self), no_longs(self)};
  Tensor ordered = flat, order;
  if (!presorted) std::tie(ordered, order) = flat.sort();
  const Groups groups =
      groups_of(at::ne(ordered.narrow(0, 1, length - 1), ordered.narrow(0, 0, length - 1)), length, inverse);
  Tensor number = no_longs(self);
  if (inverse) {
    number = groups.number;
    if (!presorted) number = at::empty_like(groups.number).scatter_(0, order, groups.number);
    number = number.reshape(self.sizes());
  }
  return {ordered.index_select(0, groups.starts), number, counts ? lengths_of(groups.starts, length) : no_longs(self)};
}

// Slices along `dim` are the elements.
std::tuple<Tensor, Tensor, Tensor> unique_slices(const Tensor& self, int64_t dim, bool presorted, bool inverse,
                                                 bool counts) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  const int64_t length = self.size(dim);
  if (length == 0) {
    for (int64_t d = 0; d < self.dim(); d++)
      TORCH_CHECK(d == dim || self.size(d) != 0,
                  "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return {at::empty(self.sizes(), self.options()), no_longs(self), no_longs(self)};
  }
  TORCH_CHECK(self.numel() > 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const Tensor slices = self.movedim(dim, 0).reshape({length, -1});
  Tensor order = at::arange(length, self.options().dtype(at::kLong));
  if (!presorted) {
    // Stable sorts from the last column to the first leave the rows in lexicographic order.
    for (int64_t column = slices.size(1) - 1; column >= 0; column--) {
      const Tensor keys = slices.select(1, column).index_select(0, order);
      order = order.index_select(0, std::get<1>(keys.sort(/*stable=*/std::optional<bool>(true), /*dim=*/0)));
    }
  }
  const Tensor ordered = presorted ? slices : slices.index_select(0, order);
  const Groups groups =
      groups_of(at::ne(ordered.narrow(0, 1, length - 1), ordered.narrow(0, 0, length - 1)).any(1), length, inverse);
  Tensor number = no_longs(self);
  if (inverse) number = at::empty_like(groups.number).scatter_(0, order, groups.number);
  return {self.index_select(dim, order.index_select(0, groups.starts)), number,
          counts ? lengths_of(groups.starts, length) : no_longs(self)};
}

}  // namespace

std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool /*sorted*/, bool return_inverse) {
  auto [values, inverse, counts] = unique_flat(self, false, return_inverse, false);
  return {values, inverse};
}

std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& self, bool /*sorted*/, bool return_inverse,
                                            bool return_counts) {
  return unique_flat(self, false, return_inverse, return_counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& self, int64_t dim, bool /*sorted*/, bool return_inverse,
                                              bool return_counts) {
  return unique_slices(self, dim, false, return_inverse, return_counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse,
                                                          bool return_counts) {
  return unique_slices(self, dim, true, return_inverse, return_counts);
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                                      std::optional<int64_t> dim) {
  if (!dim || (*dim == 0 && self.dim() == 1)) return unique_flat(self, true, return_inverse, return_counts);
  return unique_slices(self, *dim, true, return_inverse, return_counts);
}

}  // namespace mybackend::aten
