package scala;

public abstract class Enumeration {
  public abstract class Value {}
}
