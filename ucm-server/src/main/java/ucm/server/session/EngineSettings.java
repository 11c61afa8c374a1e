package ucm.server.session;

import ucm.pipeline.config.ConnectorSettings;

/** What an engine has to know of its configuration, which the daemon alone reads: bits of a {@code u8}. */
public final class EngineSettings {

  /** Blocks of generated tokens are saved. */
  static final int SAVES_GENERATED = 1;

  /** Loads and saves go layer by layer. */
  static final int LAYERWISE = 2;

  private EngineSettings() {}

  /** The bits of some settings. */
  public static int bits(ConnectorSettings settings) {
    return (settings.saveDecodeBlocks() ? SAVES_GENERATED : 0)
        | (settings.useLayerwise() ? LAYERWISE : 0);
  }
}
