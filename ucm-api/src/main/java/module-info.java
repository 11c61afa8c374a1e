/**
 * The contract between those who move KV-cache blocks and those who keep them.
 *
 * <p>{@link ucm.api.Store} is the service: a module that keeps blocks says {@code provides
 * ucm.api.Store with ...} and is found by {@link java.util.ServiceLoader}. Everything else here is a
 * value that goes in or comes out of a store. The module needs nothing but {@code java.base}, so a
 * store author compiles against this module alone.
 */
@org.jspecify.annotations.NullMarked
module ucm.api {
  requires static transitive org.jspecify;

  exports ucm.api;
  exports ucm.api.admin;
  exports ucm.api.config;
}
