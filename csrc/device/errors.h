// Codes of ErrorRecord: what a kernel found wrong with its data. The layer above turns one into upstream's message when
// it next waits for the device. Names only; `report()` (portable.h) writes a record.
#pragma once

namespace mybackend::device {

enum ErrorCode : int {
  kNoError = 0,
  kIndexOutOfRange = 1,      // values: index, size, dimension
  kTargetOutOfRange = 2,     // values: target, number of classes
  kNegativeProbability = 3,  // a probability is negative, inf or NaN; values: row
  kProbabilitySum = 4,       // the probabilities of a row sum to zero; values: row
  kInvalidValue = 5,         // values: the value, lowest allowed, highest allowed
};

}  // namespace mybackend::device
