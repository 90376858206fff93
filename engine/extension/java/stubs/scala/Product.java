package scala;

public interface Product {
  Object productElement(int place);
}
