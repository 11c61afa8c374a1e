package ucm.lite.curve;

import java.util.function.Function;
import ucm.lite.record.TouchOrder;

/**
 * The LRU curves of a trace in both touch orders.
 *
 * @param leafLast blocks of a request touched first to last
 * @param rootLast blocks of a request touched last to first
 */
public record LruCurves(LruCurve leafLast, LruCurve rootLast) {
  static LruCurves of(Function<TouchOrder, LruCurve> curve) {
    return new LruCurves(curve.apply(TouchOrder.LEAF_LAST), curve.apply(TouchOrder.ROOT_LAST));
  }

  public LruCurve of(TouchOrder order) {
    return switch (order) {
      case LEAF_LAST -> leafLast;
      case ROOT_LAST -> rootLast;
    };
  }
}
