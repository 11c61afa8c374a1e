/** The store {@code Valkey}. Its client and what that needs come with it in the plugin's folder. */
@SuppressWarnings("requires-automatic")
module ucm.store.valkey {
  requires io.netty.buffer;
  requires io.netty.common;
  requires lettuce.core;
  requires ucm.api;

  provides ucm.api.Store with
      ucm.store.valkey.ValkeyStore;
}
