// Gradients and streams: a node runs on the stream on which its forward ran, and gradients may come from another one.
//
// Where producer and consumer share a stream, which is nearly always, the stream's own order is all it takes.
// Otherwise upstream's InputBuffer keeps the gradient: it chooses the stream that adds, records and waits for events,
// and leaves the events that the consumer has to wait for.

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/core/StreamGuard.h>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/run.h"

namespace mybackend::engine {

using torch::autograd::InputBuffer;

// The buffer of a node with gradients from other streams; made on the first of them.
InputBuffer& Run::crossing(uint32_t index) {
  Entry& entry = workspace_->plan.entries[index];
  if (entry.state & kCrossing) return workspace_->crossings.at(index);
  // What has arrived until now came on the node's own stream.
  InputBuffer buffer(entry.inputs);
  const std::optional<c10::Stream> own = entry.node->stream();
  for (uint32_t i = 0; i < entry.inputs; ++i) {
    Tensor gradient = std::move(workspace_->inputs[entry.inputs_at + i]);
    if (gradient.defined()) buffer.add(i, std::move(gradient), own, own, entry.node);
  }
  entry.state |= kCrossing;
  return workspace_->crossings.emplace(index, std::move(buffer)).first->second;
}

void Run::deliver_between_streams(uint32_t target, uint32_t place, Node& producer, Tensor&& gradient,
                                  const std::optional<c10::Stream>& stream) {
  Entry& entry = workspace_->plan.entries[target];
  const bool simple = !(entry.state & kCrossing);
  if (!gradient.defined()) return;
  const std::optional<c10::Stream> consumer = entry.node->stream();
  if (simple && (gradient.device().type() != *accelerator_ || (stream && consumer && *stream == *consumer))) {
    accumulate(workspace_->inputs[place], std::move(gradient));
    return;
  }
  crossing(target).add(place - entry.inputs_at, std::move(gradient), stream, consumer, &producer);
}

// I5: the node's stream waits for what other streams still do to its gradients.
void Run::take_crossing(uint32_t index, variable_list& arguments, const std::optional<c10::Stream>& stream) {
  auto lock = lock_if_shared();
  auto found = workspace_->crossings.extract(index);
  if (lock.owns_lock()) lock.unlock();
  InputBuffer& buffer = found.mapped();
  for (size_t i = 0; i < buffer.buffer.size(); ++i) {
    const auto& event = buffer.ready_events[i];
    if (buffer.buffer[i].defined() && event && stream && buffer.ready_streams[i] != stream) stream->wait(*event);
    arguments.push_back(std::move(buffer.buffer[i]));
  }
}

// The caller's gradients were left on this stream: upstream's post-processing makes the streams that were current when
// backward was called wait for it.
void Run::leave_on_stream(const c10::Stream& stream) {
  const auto lock = lock_if_shared();
  if (last_left_ == stream) return;
  last_left_ = stream;
  graph_task_->leaf_streams.insert(stream);
}

// The streams current on the caller's thread, of the devices that have been used.
void Run::note_caller_streams(GraphTask& graph_task) const {
  const c10::impl::VirtualGuardImpl guard(*accelerator_);
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(*accelerator_);
  auto& streams = graph_task.caller_current_streams_;
  streams.resize(guard.deviceCount());
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    if (hooks.hasPrimaryContext(index)) streams[i] = guard.getStream(c10::Device(*accelerator_, index));
  }
}

}  // namespace mybackend::engine
