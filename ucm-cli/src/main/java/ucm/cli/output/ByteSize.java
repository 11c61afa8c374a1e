package ucm.cli.output;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** A number of bytes as users write it: {@code 80GB}, {@code 7.68TB}, {@code 0}. */
public record ByteSize(double bytes) {

  private static final Pattern FORM =
      Pattern.compile("([0-9]+(?:\\.[0-9]+)?)(?:([kmgtp]?)(i?)b)?", Pattern.CASE_INSENSITIVE);
  private static final String UNITS = "kmgtp";

  /** Blocks of some size that fit. */
  public long blocks(long blockBytes) {
    return (long) (bytes / blockBytes);
  }

  public static final class Converter implements ITypeConverter<ByteSize> {

    @Override
    public ByteSize convert(String value) {
      Matcher form = FORM.matcher(value.strip());
      boolean unitless = value.chars().noneMatch(Character::isLetter);
      if (!form.matches() || (unitless && Double.parseDouble(form.group(1)) != 0)) {
        throw new TypeConversionException("is a size with its unit, such as 80GB; found " + value);
      }
      double base = form.group(3) == null || form.group(3).isEmpty() ? 1000 : 1024;
      String unit = form.group(2) == null ? "" : form.group(2).toLowerCase(Locale.ROOT);
      double scale = unit.isEmpty() ? 1 : Math.pow(base, UNITS.indexOf(unit) + 1.0);
      return new ByteSize(Double.parseDouble(form.group(1)) * scale);
    }
  }
}
