// Codes of ErrorRecord: what a kernel found wrong with its data. The layer above turns one into upstream's message when
// it next waits for the device. Names only; `report()` (portable.h) writes a record.
#pragma once

namespace mybackend::device {

enum ErrorCode : int {
  kNoError = 0,
  kIndexOutOfRange = 1,           // values: index, size, dimension
  kTargetOutOfRange = 2,          // values: target, number of classes
  kNegativeProbability = 3,       // a probability is negative, inf or NaN; values: row
  kProbabilitySum = 4,            // the probabilities of a row sum to zero; values: row
  kInvalidValue = 5,              // values: the value, lowest allowed, highest allowed
  kIndexOutOfRangeInSelf = 6,     // embedding and index_select say no more than this; no values
  kTakeIndexOutOfRange = 7,       // take and put; values: index, number of elements
  kGatherIndexOutOfRange = 8,     // gather and scatter; values: index, size, dimension
  kDivisionByZero = 9,            // integer division; no values
  kAssertion = 10,                // _assert_async; values: number of the message
  kProbabilityOutOfRange = 11,    // bernoulli; no values
  kOutsideUnitInterval = 12,      // input of binary_cross_entropy; no values
  kIndexCopyOutOfRange = 13,      // index_copy; values: index, size, dimension
  kCompiledIndexOutOfRange = 14,  // an index in a kernel of torch.compile; values: index, size
  kException = 20,                // host work threw; the exception is kept beside the record (runtime/errors.h)
};

}  // namespace mybackend::device
