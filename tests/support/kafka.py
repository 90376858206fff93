"""The mock broker that librdkafka carries: it lives as long as its producer."""

from __future__ import annotations

import logging

from confluent_kafka import Producer


class Broker:
    """A cluster of one broker; topics appear when they are written to."""

    def __init__(self):
        quiet = logging.Logger("librdkafka", logging.CRITICAL)
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock"}, logger=quiet)
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        servers = ",".join(f"{b.host}:{b.port}" for b in brokers)
        self.options = {"kafka.bootstrap.servers": servers}

    def send(self, topic, partition, *values):
        """Messages, in the order given."""
        for value in values:
            self._producer.produce(topic, value=value, partition=partition)
        assert self._producer.flush(10) == 0
