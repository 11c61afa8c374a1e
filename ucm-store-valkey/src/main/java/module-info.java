/** The store {@code Valkey}, a plugin: its client and what that needs come with it in the plugin's folder. */
@org.jspecify.annotations.NullMarked
@SuppressWarnings("requires-automatic")
module ucm.store.valkey {
  requires io.netty.buffer;
  requires io.netty.common;
  requires lettuce.core;
  requires static org.jspecify;
  requires ucm.api;

  provides ucm.api.Store with
      ucm.store.valkey.ValkeyStore;
}
