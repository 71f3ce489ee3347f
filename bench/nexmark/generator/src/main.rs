//! Events of Nexmark as three files of CSV: `nexmark-events COUNT FOLDER`.
//!
//! The generator takes the clock's time for its first event. Here it is fixed, five seconds before a
//! midnight, so that two runs make the same bytes, and events of any number fall on two days.

use std::env;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use nexmark::config::NexmarkConfig;
use nexmark::event::Event;
use nexmark::EventGenerator;

const FIRST_MS: u64 = 1_436_918_395_000; // 2015-07-14T23:59:55Z
const NS_PER_MS: u64 = 1_000_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let [_, count, folder] = &arguments[..] else {
        panic!("usage: nexmark-events COUNT FOLDER");
    };
    let create = |name: &str, header: &str| -> Result<BufWriter<File>> {
        let mut file = BufWriter::new(File::create(Path::new(folder).join(name))?);
        writeln!(file, "{header}")?;
        Ok(file)
    };
    let mut persons = create(
        "person.csv",
        "id,name,email_address,credit_card,city,state,date_time,extra",
    )?;
    let mut auctions = create(
        "auction.csv",
        "id,item_name,description,initial_bid,reserve,date_time,expires,seller,category,extra",
    )?;
    let mut bids = create("bid.csv", "auction,bidder,price,channel,url,date_time,extra")?;
    let config = NexmarkConfig {
        base_time: FIRST_MS,
        ..NexmarkConfig::default()
    };
    // No text of the generator has a comma, a quote or the end of a line.
    for event in EventGenerator::new(config).take(count.parse().expect("COUNT is a number")) {
        let ns = event.timestamp() * NS_PER_MS;
        match event {
            Event::Person(p) => writeln!(
                persons,
                "{},{},{},{},{},{},{ns},{}",
                p.id, p.name, p.email_address, p.credit_card, p.city, p.state, p.extra
            )?,
            Event::Auction(a) => writeln!(
                auctions,
                "{},{},{},{},{},{ns},{},{},{},{}",
                a.id,
                a.item_name,
                a.description,
                a.initial_bid,
                a.reserve,
                a.expires * NS_PER_MS,
                a.seller,
                a.category,
                a.extra
            )?,
            Event::Bid(b) => writeln!(
                bids,
                "{},{},{},{},{},{ns},{}",
                b.auction, b.bidder, b.price, b.channel, b.url, b.extra
            )?,
        }
    }
    persons.flush()?;
    auctions.flush()?;
    bids.flush()
}
