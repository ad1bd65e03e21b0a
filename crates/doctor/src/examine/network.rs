//! Settings of TCP, and network cards.

use crate::checks as c;
use crate::facts::{Facts, Network};
use crate::report::Report;

/// Connections that the node lets wait to be accepted.
const BACKLOG: u64 = 1_024;
const BUFFER_MIN_BYTES: u64 = 4 << 20;
/// As Cassandra's packages set it.
const KEEPALIVE_MAX_S: u64 = 300;
const CONGESTION: [&str; 4] = ["cubic", "bbr", "dctcp", "reno"];
const SPEED_MIN_MBIT: u64 = 1_000;
const MTU_MIN: u64 = 1_280;
const PACKETS_PER_ERROR: u64 = 10_000;
const CPUS_OF_ONE_QUEUE: u64 = 8;

pub fn settings(facts: &Facts, report: &mut Report) {
    let network = &facts.network;
    let is = |value: u64| format!("it is {value}");
    report.look(&c::SOMAXCONN, "net.core.somaxconn", network.somaxconn, |value| {
        (value < BACKLOG).then(|| is(value))
    });
    report.look(&c::SYN_BACKLOG, "net.ipv4.tcp_max_syn_backlog", network.syn_backlog, |value| {
        (value < BACKLOG).then(|| is(value))
    });
    for (check, buffers) in
        [(&c::SOCKET_BUFFERS, &network.buffers), (&c::TCP_BUFFERS, &network.tcp_buffers)]
    {
        for (name, bytes) in buffers {
            report.look(check, name, *bytes, |value| (value < BUFFER_MIN_BYTES).then(|| is(value)));
        }
    }
    report.look(&c::KEEPALIVE, "net.ipv4.tcp_keepalive_time", network.keepalive, |seconds| {
        (seconds > KEEPALIVE_MAX_S).then(|| format!("it is {seconds} s"))
    });
    let name = "net.ipv4.tcp_congestion_control";
    report.look(&c::CONGESTION, name, network.congestion.as_deref(), |name| {
        (!CONGESTION.contains(&name)).then(|| name.to_owned())
    });
    ports(facts, network, report);
}

fn ports(facts: &Facts, network: &Network, report: &mut Report) {
    let within = |range: &(u16, u16), port: u16| (range.0..=range.1).contains(&port);
    for port in &facts.node.ports {
        report.look(&c::PORT_TAKEN, &port.to_string(), network.outgoing, |outgoing| {
            let is_reserved = network.reserved.iter().any(|range| within(range, *port));
            let is_open = within(&outgoing, *port) && !is_reserved;
            is_open.then(|| format!("outgoing connections use {} to {}", outgoing.0, outgoing.1))
        });
    }
}

pub fn cards(facts: &Facts, report: &mut Report) {
    for card in &facts.network.cards {
        let name = card.name.as_str();
        report.look(&c::CARD_SLOW, name, card.speed, |speed| {
            (speed < SPEED_MIN_MBIT).then(|| format!("{speed} Mbit/s"))
        });
        report.look(&c::CARD_HALF_DUPLEX, name, card.duplex.as_deref(), |duplex| {
            (duplex == "half").then(|| "half duplex".to_owned())
        });
        report.look(&c::CARD_MTU, name, card.mtu, |mtu| {
            (mtu < MTU_MIN).then(|| format!("{mtu} bytes"))
        });
        let counts = card.packets.zip(card.errors);
        report.look(&c::CARD_ERRORS, name, counts, |(packets, errors)| {
            let is_much = errors > packets / PACKETS_PER_ERROR;
            is_much.then(|| format!("{errors} of {packets} packets since boot"))
        });
        let counts = card.queues.zip(facts.cpu.count);
        report.look(&c::CARD_ONE_QUEUE, name, counts, |(queues, cpus)| {
            let is_narrow = queues == 1 && cpus >= CPUS_OF_ONE_QUEUE && !card.is_spread;
            is_narrow.then(|| format!("{queues} queue, {cpus} CPUs"))
        });
    }
}
