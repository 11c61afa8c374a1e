/**
 * What stores ask of an accelerator: pinned host memory, streams, copies and events.
 *
 * <p>{@link ucm.device.DeviceDriver} is the service. A module that knows one kind of accelerator provides
 * it; stores ask for whatever there is, so that an image without such a module runs everything but
 * transfers of device memory.
 */
@org.jspecify.annotations.NullMarked
module ucm.device {
  requires static transitive org.jspecify;
  requires transitive ucm.api;

  exports ucm.device;

  uses ucm.device.DeviceDriver;
}
