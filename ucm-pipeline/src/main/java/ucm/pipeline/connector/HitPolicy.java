package ucm.pipeline.connector;

import java.math.BigDecimal;
import java.math.RoundingMode;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.config.ConnectorSettings;

/**
 * How much of what was found is used: {@code hit_ratio}, {@code persist_token_threshold} and {@code
 * load_tokens_threshold}. Immutable.
 */
public final class HitPolicy {

  // The number as the operator wrote it: 0.29 of 100 tokens are 29, which doubles do not say.
  private final @Nullable BigDecimal hitRatio;
  private final int persistTokens;
  private final int loadTokens;
  private final int blockTokens;

  /**
   * The policy of an engine.
   *
   * @param blockTokens tokens of a block
   */
  public HitPolicy(ConnectorSettings settings, int blockTokens) {
    this.hitRatio =
        settings.hitRatio().isPresent()
            ? BigDecimal.valueOf(settings.hitRatio().getAsDouble())
            : null;
    this.persistTokens = settings.persistTokenThreshold();
    this.loadTokens = settings.loadTokensThreshold();
    this.blockTokens = blockTokens;
  }

  /** Whether a request is too short to be looked up, loaded or saved. */
  public boolean skips(int tokens) {
    return tokens < persistTokens;
  }

  int persistTokens() {
    return persistTokens;
  }

  int loadTokens() {
    return loadTokens;
  }

  /** The configured ratio, as a text for the log. */
  String hitRatio() {
    return hitRatio == null ? "unset" : hitRatio.toPlainString();
  }

  /**
   * How many of the blocks found outside may be used so that all hits, those on the device included,
   * stay within the share of the prompt.
   */
  int withinRatio(int hbmBlocks, int found, int promptTokens) {
    if (hitRatio == null) {
      return found;
    }
    BigDecimal tokens = hitRatio.multiply(BigDecimal.valueOf(promptTokens));
    int most = tokens.setScale(0, RoundingMode.FLOOR).intValueExact() / blockTokens;
    return Math.clamp(most - hbmBlocks, 0, found);
  }

  /**
   * How many of the blocks found outside are loaded.
   *
   * @param hbmBlocks blocks before them that are on the device
   */
  public int loaded(int hbmBlocks, int found, int promptTokens) {
    int taken = withinRatio(hbmBlocks, found, promptTokens);
    return isWorthLoading(taken * blockTokens) ? taken : 0;
  }

  boolean isWorthLoading(int externalTokens) {
    return externalTokens > loadTokens;
  }
}
