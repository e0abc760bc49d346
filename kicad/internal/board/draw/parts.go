// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// Names of the project and its child sheet.
const (
	project   = "beacon"
	childName = "MCU"
	childFile = "mcu.kicad_sch"
	issued    = "2026-11-30"
	revision  = "A"
)

// A part is one component: what the schematic says of it, and the net of every
// pin as KiCad's netlist spells it. The sheets draw the nets as wires and
// labels, the board as copper; ERC, DRC and parity hold the three together.
type part struct {
	ref, lib, value, footprint string
	datasheet                  string // that of the library when empty
	mpn                        string // empty for a part that any maker sells
	about                      string // the Description field
	child                      bool   // stands on the child sheet
	nets                       map[string]string
	use                        map[string]string // what a pin is for, in PINOUT.md

	symbol symbol
	pins   []pin
}

// noConnect is the net of a pin left open, which KiCad names by the pin.
const noConnect = "NC"

const (
	cap0603 = "Capacitor_SMD:C_0603_1608Metric"
	cap0805 = "Capacitor_SMD:C_0805_2012Metric"
	res0603 = "Resistor_SMD:R_0603_1608Metric"
)

// catalogue is every part with its library symbol, in the order of the BOM.
func catalogue(lib *library) ([]part, error) {
	parts := append(rootParts(), childParts()...)
	for i := range parts {
		p := &parts[i]
		var err error
		if p.symbol, err = lib.symbol(p.lib); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ref, err)
		}
		if p.pins, err = p.symbol.pins(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ref, err)
		}
		if p.datasheet == "" {
			p.datasheet = p.symbol.property("Datasheet")
		}
		if len(p.pins) != len(p.nets) {
			return nil, fmt.Errorf("%s: %d pins, %d nets", p.ref, len(p.pins), len(p.nets))
		}
	}
	return parts, nil
}

func rootParts() []part {
	return []part{
		{
			ref: "C1", lib: "Device:C", value: "1uF", footprint: cap0805, about: "Ceramic capacitor, 16 V, X7R",
			nets: map[string]string{"1": "/VIN", "2": "GND"},
		},
		{
			ref: "C2", lib: "Device:C", value: "1uF", footprint: cap0805, about: "Ceramic capacitor, 16 V, X7R",
			nets: map[string]string{"1": "+3V3", "2": "GND"},
		},
		{
			ref: "D1", lib: "Device:LED", value: "GREEN", footprint: "LED_SMD:LED_0603_1608Metric", about: "Green LED, 2.1 V at 4 mA",
			nets: map[string]string{"1": "GND", "2": "/LED_A"},
		},
		{
			ref: "J1", lib: "Connector_Generic:Conn_01x02", value: "POWER", footprint: "Connector_JST:JST_PH_B2B-PH-K_1x02_P2.00mm_Vertical",
			datasheet: "http://www.jst-mfg.com/product/pdf/eng/ePH.pdf", mpn: "B2B-PH-K-S", about: "Supply connector, JST PH, 2 pins",
			nets: map[string]string{"1": "/VIN", "2": "GND"},
			use:  map[string]string{"1": "Supply, 3.6 V to 6.0 V", "2": "Ground"},
		},
		{
			ref: "J2", lib: "Connector_Generic:Conn_01x04", value: "SENSOR", footprint: "Connector_PinHeader_2.54mm:PinHeader_1x04_P2.54mm_Vertical",
			about: "Pin header, 4 pins, 2.54 mm",
			nets:  map[string]string{"1": "+3V3", "2": "I2C_SDA", "3": "I2C_SCL", "4": "GND"},
			use:   map[string]string{"1": "Sensor supply, up to 100 mA", "2": "I2C data", "3": "I2C clock", "4": "Ground"},
		},
		{
			ref: "R1", lib: "Device:R", value: "330", footprint: res0603, about: "Resistor, 1 %",
			nets: map[string]string{"1": "/STATUS", "2": "/LED_A"},
		},
		{
			ref: "SW1", lib: "Switch:SW_Push", value: "B3U-1000P", footprint: "Button_Switch_SMD:SW_SPST_B3U-1000P",
			datasheet: "https://omronfs.omron.com/en_US/ecb/products/pdf/en-b3u.pdf", mpn: "B3U-1000P", about: "Push button, normally open",
			nets: map[string]string{"1": "/MCU/BUTTON", "2": "GND"},
		},
		{
			ref: "U1", lib: "Regulator_Linear:MCP1700x-330xxTT", value: "MCP1700-3302E", footprint: "Package_TO_SOT_SMD:SOT-23",
			mpn: "MCP1700T-3302E/TT", about: "Low dropout regulator, 3.3 V, 250 mA, SOT-23",
			nets: map[string]string{"1": "GND", "2": "+3V3", "3": "/VIN"},
		},
	}
}

func childParts() []part {
	parts := []part{
		{
			ref: "C3", lib: "Device:C", value: "100nF", footprint: cap0603, about: "Ceramic capacitor, 16 V, X7R",
			nets: map[string]string{"1": "+3V3", "2": "GND"},
		},
		{
			ref: "J3", lib: "Connector_Generic:Conn_01x03", value: "UPDI", footprint: "Connector_PinHeader_2.54mm:PinHeader_1x03_P2.54mm_Vertical",
			about: "Pin header, 3 pins, 2.54 mm",
			nets:  map[string]string{"1": "+3V3", "2": "/MCU/UPDI", "3": "GND"},
			use:   map[string]string{"1": "Target supply", "2": "Programming and debugging", "3": "Ground"},
		},
		{
			ref: "R2", lib: "Device:R", value: "4k7", footprint: res0603, about: "Resistor, 1 %",
			nets: map[string]string{"1": "+3V3", "2": "I2C_SDA"},
		},
		{
			ref: "R3", lib: "Device:R", value: "4k7", footprint: res0603, about: "Resistor, 1 %",
			nets: map[string]string{"1": "+3V3", "2": "I2C_SCL"},
		},
		{
			ref: "U2", lib: "MCU_Microchip_ATtiny:ATtiny412-SS", value: "ATtiny412-SS", footprint: "Package_SO:SOIC-8_3.9x4.9mm_P1.27mm",
			mpn: "ATTINY412-SSN", about: "8-bit microcontroller, 4 kB flash, 256 B SRAM, SOIC-8",
			nets: map[string]string{
				"1": "+3V3", "2": noConnect, "3": "/MCU/BUTTON", "4": "I2C_SDA",
				"5": "I2C_SCL", "6": "/MCU/UPDI", "7": "/STATUS", "8": "GND",
			},
			use: map[string]string{
				"1": "Supply", "2": "Spare, left open", "3": "Button, low when pressed, pull-up on in firmware", "4": "I2C data",
				"5": "I2C clock", "6": "Programming and debugging", "7": "LED, high is on", "8": "Ground",
			},
		},
	}
	for i := range parts {
		parts[i].child = true
	}
	return parts
}

// netOf is the net of a pin as KiCad spells it, open pins included.
func (p part) netOf(q pin) string {
	if n := p.nets[q.number]; n != noConnect {
		return n
	}
	return fmt.Sprintf("unconnected-(%s-%s-Pad%s)", p.ref, strings.ReplaceAll(q.name, "/", "{slash}"), q.number)
}

func byRef(parts []part, ref string) (part, error) {
	for _, p := range parts {
		if p.ref == ref {
			return p, nil
		}
	}
	return part{}, fmt.Errorf("no part %s", ref)
}
