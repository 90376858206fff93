package com.fasterxml.jackson.databind;

public class ObjectMapper {
  public <T> T readValue(String text, Class<T> type) throws java.io.IOException {
    throw new Error();
  }

  public String writeValueAsString(Object value) throws java.io.IOException {
    throw new Error();
  }
}
