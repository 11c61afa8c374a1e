/**
 * JCuda's Java classes with a descriptor of their own; the published jar has none, and jlink takes no
 * automatic module.
 *
 * <p>They are open to the module that calls the driver: JCuda has no way to make a {@code CUevent} or a
 * {@code CUipcMemHandle} of a handle that comes from an engine, nor to point one {@code Pointer} at one
 * place after another.
 */
@SuppressWarnings("module") // ucm.device.cuda is built after this module.
module jcuda {
  requires java.logging;

  exports jcuda;
  exports jcuda.driver;

  opens jcuda to
      ucm.device.cuda;
  opens jcuda.driver to
      ucm.device.cuda;
}
